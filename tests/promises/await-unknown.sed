# No mailbox is taken to await.
# file: lua/lib_space.c
/^bool space_awaits/,/^}/s/return .*;/return (void)s, (void)to, false;/
