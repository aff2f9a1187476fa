# Another number of threads is not looked at.
# file: core/dev/device.c
s/if \(threads && threads != d->threads\)/if (0)/
