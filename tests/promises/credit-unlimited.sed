# A generation does not look at its credit.
# file: actors/request.c
s/r->ahead >= r->credit \?/0 ?/
