# Wrong use ends with 1.
# file: lua/weir/cli.lua
/is_usage/,/terminated/s/return 2/return 1/
