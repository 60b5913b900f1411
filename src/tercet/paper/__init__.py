"""The C3 paper, figure by figure: one file each, measured into tables, drawn and judged from them."""
