"""How results are shown: sentences as templates, the style of figures, panels, maps, fonts."""
