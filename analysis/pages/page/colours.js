// The colours of the page, light and dark: the tokens (tokens.py), and scales of weights.

const PALETTES = {
  light: {
    ...TOKENS.light,
    ramp: ["#ffffff", "#b9d9ee", "#4c97cb", "#10508f", "#07244d"],
    change: ["#453e00", "#a89a1c", "#ece5b0", "#ffffff", "#cfc5e6", "#8073ac", "#2d004b"],
  },
  dark: {
    ...TOKENS.dark,
    ramp: ["#141414", "#173a5c", "#2673b3", "#7cc4f5", "#f4fbff"],
    change: ["#f0e79a", "#b3a51e", "#403a00", "#141414", "#35245c", "#8f7cc9", "#e3d8ff"],
  },
};
// ramp: from no weight to the largest. change: from less to more, olive to purple, which all eyes
// tell apart; orange is the keys'.
const systemDark = matchMedia("(prefers-color-scheme: dark)");
let isSystemDark = systemDark.matches; // to read `matches` while it changes can cost the event
systemDark.addEventListener("change", event => {
  isSystemDark = event.matches;
});
const isDark = () => state.dark ?? isSystemDark;
const colours = () => PALETTES[isDark() ? "dark" : "light"];

// how much: weights 0 ... 1 by their root, so that small ones are seen; differences -1 ... 1 in
// both directions
function shades() {
  // -> weight as a share of the largest -> a colour
  const {ramp, change} = colours(),
    mix = d3.interpolateRgbBasis(isDifference() ? change : ramp);
  if (isDifference()) return x => mix(0.5 + (Math.sign(x) * Math.sqrt(Math.abs(x))) / 2);
  return x => mix(Math.sqrt(Math.max(x, 0)));
}

const place = (n, count) => {
  // the colour of a position among so many, from the first to the last
  const share = count > 1 ? n / (count - 1) : 0;
  return d3.interpolateViridis(isDark() ? 0.3 + 0.7 * share : 0.82 * share);
};

export {colours, isDark, place, shades, systemDark};
