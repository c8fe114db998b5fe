"use strict";
// The colours of the page, light and dark.

const PALETTES = {
  light: {text: "#1c1c1c", soft: "#5b5b58", back: "#ffffff", card: "#f7f7f5", line: "#d6d6d0", query: "#0067a8",
          key: "#b84a00", chosen: "#00785a", bar: "#3f8cc2",
          ramp: ["#ffffff", "#b9d9ee", "#4c97cb", "#10508f", "#07244d"]},
  dark: {text: "#ecece8", soft: "#adada7", back: "#141414", card: "#1f1f1e", line: "#42423e", query: "#6cc0ff",
         key: "#ff9d57", chosen: "#3ad6a6", bar: "#4f9bd6",
         ramp: ["#141414", "#173a5c", "#2673b3", "#7cc4f5", "#f4fbff"]}};
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => state.dark ?? systemDark.matches;
const colours = () => PALETTES[isDark() ? "dark" : "light"];
