# A device that is lost is given as it is.
# file: core/dev/devices.c
s/if \(d && !weir__device_lost\(d\)\) \{/if (d) {/
