/* Preloaded: the clock of the day as a file sets it, by so many seconds; all other clocks as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME) {
        char text[32];
        int file = open(getenv("SET_CLOCK"), O_RDONLY | O_CLOEXEC);
        long length = file < 0 ? 0 : read(file, text, sizeof text - 1);
        if (file >= 0)
            close(file);
        if (length > 0) {
            text[length] = 0;
            t->tv_sec += atol(text);
        }
    }
    return result;
}
