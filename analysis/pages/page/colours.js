"use strict";
// The colours of the page, light and dark.

const PALETTES = {
  light: {text: "#1c1c1c", soft: "#5b5b58", back: "#ffffff", card: "#f7f7f5", line: "#d6d6d0", query: "#0067a8",
          key: "#b84a00", chosen: "#00785a", bar: "#3f8cc2",
          more: "#5b3a94", less: "#6b6000",
          ramp: ["#ffffff", "#b9d9ee", "#4c97cb", "#10508f", "#07244d"],
          change: ["#453e00", "#a89a1c", "#ece5b0", "#ffffff", "#cfc5e6", "#8073ac", "#2d004b"]},
  dark: {text: "#ecece8", soft: "#adada7", back: "#141414", card: "#1f1f1e", line: "#42423e", query: "#6cc0ff",
         key: "#ff9d57", chosen: "#3ad6a6", bar: "#4f9bd6",
         more: "#b9a6f0", less: "#d8cc4e",
         ramp: ["#141414", "#173a5c", "#2673b3", "#7cc4f5", "#f4fbff"],
         change: ["#f0e79a", "#b3a51e", "#403a00", "#141414", "#35245c", "#8f7cc9", "#e3d8ff"]}};
// ramp: from no weight to the largest. change: from less to more, olive to purple, which all eyes tell apart; orange is the keys'.
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => state.dark ?? systemDark.matches;
const colours = () => PALETTES[isDark() ? "dark" : "light"];

// how much: weights 0 ... 1 by their root, so that small ones are seen; differences -1 ... 1 in both directions
function shades() {  // -> weight as a share of the largest -> a colour
  const {ramp, change} = colours(), mix = d3.interpolateRgbBasis(isDifference() ? change : ramp);
  if (isDifference()) return x => mix(0.5 + Math.sign(x) * Math.sqrt(Math.abs(x)) / 2);
  return x => mix(Math.sqrt(Math.max(x, 0)));
}

const place = (n, count) => {  // the colour of a position among so many, from the first to the last
  const share = count > 1 ? n / (count - 1) : 0;
  return d3.interpolateViridis(isDark() ? 0.3 + 0.7 * share : 0.82 * share);
};
