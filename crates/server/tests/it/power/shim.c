/*
 * Keeps what a loss of power would leave of a directory, for tests (LD_PRELOAD; Linux, glibc).
 *
 * POWER_ROOT    the directory, with all below it
 * POWER_SHADOW  where it is kept what is durable, on the same file system:
 *               keep.INODE   a hard link, so that an inode's number is never given again
 *               file.INODE   what of a file is durable: its bytes and its length
 *               names.INODE  what of a directory is durable: "INODE TYPE NAME" in lines
 *               since.INODE  of a segment of the log the time of the first write that no sync
 *                            covers, in nanoseconds since 1970; 0 if there is none
 *               took.PID     how long a process took to sync such writes last, in nanoseconds
 * POWER_BOOT    a file that is read for the id of the machine's boot
 * POWER_DIES_AT the number of the sync, from 1, within which the process is killed
 * POWER_DIES_ON only syncs of paths that contain this are counted for that
 * POWER_DIES_IN how long that sync has taken by then, in microseconds
 * POWER_FAILS_AT the number of the sync, from 1, that fails: what it was to make durable counts as
 *               clean from then on, as Linux has it, and never becomes durable unless it is written
 *               again (failed.INODE says that one has failed); reads past the system's memory
 *               (O_DIRECT) show what is durable
 * POWER_FAILS_ON only syncs of paths that contain this are counted for that
 * POWER_TAKES   how long each sync of a segment of the log takes at least, in microseconds
 * POWER_LIES    a file: while it is there, syncs of paths that contain its text do nothing, those
 *               of directories if it is "directories/", and all if it is empty
 *
 * A write counts as durable once a sync that began after it has ended without an error, a name
 * once such a sync of its directory has. What a sync is to make durable is put aside when it begins,
 * and is in the shadow before it returns: what a kill meets half done is torn. Syncs of one file are
 * done one after the other. A sync that is a lie counts as one for since.INODE: its caller believes
 * it. What this does not understand ends the process loudly: writes through memory maps, files
 * that are synced by their flags, truncation by name. A write that it does not see is never
 * durable, so a test fails by it and none passes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define BUCKETS 1024
#define SYNCING 64

struct range { off_t from, to; };

/* A file below the root, and what of it was written since it was last synced. */
struct file {
    ino_t inode;
    off_t least; /* the shortest that it was since then */
    size_t count, room;
    struct range *dirty;
    int since; /* of a segment: where it is told from when on it has unsynced writes; else -1 */
    long long first; /* when the first of them was written; 0 if there is none */
    int is_told;
    struct file *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files[BUCKETS];
static char root[PATH_BYTES], shadow[PATH_BYTES / 2];
static const char *boot, *lies, *dies_on, *fails_on;
static long dies_at, dies_in_us, syncs, fails_at, fallible_syncs, takes_us;
/* Whoever syncs a file holds one of these meanwhile, and takes the lock above only within. */
static pthread_mutex_t syncing[SYNCING] = {[0 ... SYNCING - 1] = PTHREAD_MUTEX_INITIALIZER};

/* Calls of this library itself go to the system, past what it puts in their place. */
#define sys_open(path, flags) ((int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600))
#define sys_write(fd, bytes, count) syscall(SYS_write, fd, bytes, count)
#define sys_close(fd) syscall(SYS_close, fd)

static void give_up(const char *what, const char *path) {
    char text[2 * PATH_BYTES];
    int count = snprintf(text, sizeof text, "power shim: %s: %s (%s)\n", what, path,
                         strerror(errno));
    sys_write(2, text, count);
    abort();
}

__attribute__((constructor)) static void begin(void) {
    const char *from = getenv("POWER_ROOT"), *to = getenv("POWER_SHADOW");
    if (from == NULL || to == NULL)
        return;
    if (strlen(from) >= sizeof root || strlen(to) >= sizeof shadow)
        give_up("the path is too long", to);
    strcpy(root, from);
    strcpy(shadow, to);
    boot = getenv("POWER_BOOT");
    lies = getenv("POWER_LIES");
    dies_at = getenv("POWER_DIES_AT") ? atol(getenv("POWER_DIES_AT")) : 0;
    dies_in_us = getenv("POWER_DIES_IN") ? atol(getenv("POWER_DIES_IN")) : 0;
    dies_on = getenv("POWER_DIES_ON") ? getenv("POWER_DIES_ON") : "";
    fails_at = getenv("POWER_FAILS_AT") ? atol(getenv("POWER_FAILS_AT")) : 0;
    fails_on = getenv("POWER_FAILS_ON") ? getenv("POWER_FAILS_ON") : "";
    takes_us = getenv("POWER_TAKES") ? atol(getenv("POWER_TAKES")) : 0;
}

/* The path of an open file, if it lies below the root or is the root. */
static int is_watched(int fd, char *path) {
    char link[64];
    if (root[0] == 0 || fd < 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t count = readlink(link, path, PATH_BYTES - 1);
    if (count <= 0)
        return 0;
    path[count] = 0;
    size_t length = strlen(root);
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static void name(char *path, const char *kind, ino_t inode) {
    snprintf(path, PATH_BYTES, "%s/%s.%lu", shadow, kind, (unsigned long)inode);
}

/* Sees to it that an inode's number is not given again. One without a name left has no future. */
static void keep(const char *from, ino_t inode, int flags) {
    char to[PATH_BYTES];
    name(to, "keep", inode);
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, flags) != 0 && errno != EEXIST && errno != ENOENT)
        give_up("it cannot be kept", from);
}

static long long now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void put_number(int fd, long long number) {
    char text[32];
    int count = snprintf(text, sizeof text, "%020lld", number);
    if (syscall(SYS_pwrite64, fd, text, count, 0) != count)
        give_up("the shadow cannot be written", shadow);
}

/* Tells from when on a segment has writes that no sync covers. */
static void tell_since(struct file *file, long long since) {
    if (file == NULL || file->since < 0)
        return;
    file->is_told = since != 0;
    put_number(file->since, since);
}

/* Whether all that a file has is durable. */
static int is_all_durable(ino_t inode) {
    static char here[64 * 1024], there[sizeof here];
    char path[PATH_BYTES];
    name(path, "keep", inode);
    int real = sys_open(path, O_RDONLY | O_CLOEXEC);
    name(path, "file", inode);
    int durable = sys_open(path, O_RDONLY | O_CLOEXEC);
    int is_same = real >= 0 && durable >= 0;
    ssize_t count = 1;
    for (off_t at = 0; is_same && count > 0; at += count) {
        count = pread(real, here, sizeof here, at);
        is_same = count >= 0 && pread(durable, there, sizeof there, at) == count &&
                  memcmp(here, there, count) == 0;
    }
    if (real >= 0)
        sys_close(real);
    if (durable >= 0)
        sys_close(durable);
    return is_same;
}

/* Whether a sync of a file has failed: what is not durable of it counts as clean. */
static int has_failed(ino_t inode) {
    char path[PATH_BYTES];
    name(path, "failed", inode);
    return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

static void note_failed(ino_t inode) {
    char path[PATH_BYTES];
    name(path, "failed", inode);
    int fd = sys_open(path, O_WRONLY | O_CREAT | O_CLOEXEC);
    if (fd < 0)
        give_up("the shadow cannot be written", path);
    sys_close(fd);
}

static int is_segment(const char *path) {
    static const char end[] = ".segment";
    size_t length = strlen(path);
    return length >= sizeof end && strcmp(path + length + 1 - sizeof end, end) == 0;
}

static void dirtied(struct file *file, off_t from, off_t to) {
    struct range *last = file->count > 0 ? &file->dirty[file->count - 1] : NULL;
    if (last != NULL && last->from <= from && from <= last->to) {
        last->to = to > last->to ? to : last->to;
        return;
    }
    if (file->count == file->room) {
        file->room = file->room * 2 + 16;
        file->dirty = realloc(file->dirty, file->room * sizeof *file->dirty);
        if (file->dirty == NULL)
            give_up("no memory", "ranges");
    }
    file->dirty[file->count++] = (struct range){from, to};
}

/* The record of an open file below the root; the lock is held. */
static struct file *find(int fd) {
    struct stat now;
    char path[PATH_BYTES], link[64];
    if (root[0] == 0 || fstat(fd, &now) != 0 || !S_ISREG(now.st_mode))
        return NULL;
    struct file **at = &files[now.st_ino % BUCKETS];
    for (struct file *file = *at; file != NULL; file = file->next)
        if (file->inode == now.st_ino)
            return file;
    if (!is_watched(fd, path))
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    keep(link, now.st_ino, AT_SYMLINK_FOLLOW);
    struct file *file = calloc(1, sizeof *file);
    if (file == NULL)
        give_up("no memory", path);
    file->inode = now.st_ino;
    file->since = -1;
    if (is_segment(path)) {
        name(path, "since", now.st_ino);
        file->since = sys_open(path, O_WRONLY | O_CREAT | O_CLOEXEC);
        if (file->since < 0)
            give_up("the shadow cannot be opened", path);
    }
    file->least = now.st_size;
    file->next = *at;
    *at = file;
    /* A process that was killed may have written it, and a sync of this one covers that too. */
    if (now.st_size > 0 && !has_failed(now.st_ino) && !is_all_durable(now.st_ino))
        dirtied(file, 0, now.st_size);
    return file;
}

static void written(struct file *file, off_t from, off_t to) {
    if (file == NULL || to <= from)
        return;
    if (file->first == 0)
        file->first = now_ns(CLOCK_REALTIME);
    if (!file->is_told)
        tell_since(file, file->first);
    dirtied(file, from, to);
}

static void shortened(struct file *file, off_t length) {
    if (file != NULL && length < file->least)
        file->least = length;
}

/* What a sync of a file is to make durable, put aside when it begins. */
struct aside {
    off_t least, length;
    size_t count;
    struct range *ranges;
    char **bytes;
    long long first;
};

static void put_aside(struct file *file, struct aside *aside) {
    char path[PATH_BYTES];
    struct stat real;
    name(path, "keep", file->inode);
    int from = sys_open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &real) != 0)
        give_up("the file cannot be read", path);
    *aside = (struct aside){file->least, real.st_size, file->count, file->dirty, NULL, file->first};
    aside->bytes = calloc(file->count + 1, sizeof *aside->bytes);
    if (aside->bytes == NULL)
        give_up("no memory", path);
    for (size_t at = 0; at < aside->count; at++) {
        struct range *it = &aside->ranges[at];
        it->to = it->to < real.st_size ? it->to : real.st_size;
        size_t length = it->to > it->from ? it->to - it->from : 0, done = 0;
        aside->bytes[at] = malloc(length + 1);
        if (aside->bytes[at] == NULL)
            give_up("no memory", path);
        while (done < length) {
            ssize_t count = pread(from, aside->bytes[at] + done, length - done, it->from + done);
            if (count <= 0)
                give_up("the file cannot be read", path);
            done += count;
        }
    }
    sys_close(from);
    *file = (struct file){.inode = file->inode, .least = real.st_size, .since = file->since,
                          .is_told = file->is_told, .next = file->next};
}

/* The sync has ended: without an error it is all durable, else it is as unsynced as before, or
 * counts as clean. */
static void take_back(struct file *file, struct aside *aside, int is_durable, int is_clean) {
    char path[PATH_BYTES];
    struct stat durable;
    name(path, "file", file->inode);
    int to = is_durable ? sys_open(path, O_WRONLY | O_CREAT | O_CLOEXEC) : -1;
    if (is_durable) {
        if (to < 0 || fstat(to, &durable) != 0)
            give_up("the shadow cannot be opened", path);
        if (aside->least < durable.st_size && syscall(SYS_ftruncate, to, aside->least) != 0)
            give_up("the shadow cannot be cut", path);
        if (syscall(SYS_ftruncate, to, aside->length) != 0)
            give_up("the shadow cannot be cut", path);
    }
    for (size_t at = 0; at < aside->count; at++) {
        struct range it = aside->ranges[at];
        for (off_t from = it.from; is_durable && from < it.to;) {
            ssize_t count = syscall(SYS_pwrite64, to, aside->bytes[at] + (from - it.from),
                                    it.to - from, from);
            if (count <= 0)
                give_up("the shadow cannot be written", shadow);
            from += count;
        }
        if (!is_durable && !is_clean)
            dirtied(file, it.from, it.to);
        free(aside->bytes[at]);
    }
    if (is_durable) {
        sys_close(to);
    } else {
        shortened(file, aside->least);
        file->first = aside->first != 0 ? aside->first : file->first;
    }
    free(aside->ranges);
    free(aside->bytes);
}

/* Puts the names of a directory aside. */
static void put_names_aside(const char *path, ino_t inode) {
    char new[PATH_BYTES], from[2 * PATH_BYTES], line[PATH_BYTES];
    name(new, "new", inode);
    int out = sys_open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    DIR *directory = opendir(path);
    if (out < 0 || directory == NULL)
        give_up("the directory cannot be listed", path);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat it;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (fstatat(dirfd(directory), entry->d_name, &it, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        int is_directory = S_ISDIR(it.st_mode);
        snprintf(from, sizeof from, "%s/%s", path, entry->d_name);
        if (!is_directory)
            keep(from, it.st_ino, 0);
        int count = snprintf(line, sizeof line, "%lu %c %s\n", (unsigned long)it.st_ino,
                             is_directory ? 'd' : 'f', entry->d_name);
        if (sys_write(out, line, count) != count)
            give_up("the shadow cannot be written", new);
    }
    closedir(directory);
    sys_close(out);
}

/* The sync of a directory has ended. */
static void take_names_back(ino_t inode, int is_durable) {
    char to[PATH_BYTES], new[PATH_BYTES];
    name(to, "names", inode);
    name(new, "new", inode);
    if (is_durable && rename(new, to) != 0)
        give_up("the shadow cannot be written", to);
    if (!is_durable && unlink(new) != 0)
        give_up("the shadow cannot be written", new);
}

/* A sync of an open file or directory below the root. */
struct sync {
    ino_t inode;
    int is_directory, is_lie, is_failure;
    int is_of_log; /* whether it is of writes to a segment */
    struct file *file;
    struct aside aside;
};

static int is_lie(const char *path, int is_directory) {
    char text[256];
    int fd = lies == NULL ? -1 : sys_open(lies, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t count = read(fd, text, sizeof text - 1);
    sys_close(fd);
    text[count > 0 ? count : 0] = 0;
    return strcmp(text, "directories/") == 0 ? is_directory : strstr(path, text) != NULL;
}

static void sync_began(struct sync *sync, int fd, const char *path) {
    pthread_mutex_lock(&lock);
    int is_last = strstr(path, dies_on) != NULL && ++syncs == dies_at;
    sync->is_failure = fails_at > 0 && strstr(path, fails_on) != NULL && ++fallible_syncs == fails_at;
    if (sync->is_failure)
        note_failed(sync->inode);
    sync->file = sync->is_directory ? NULL : find(fd);
    sync->is_of_log = sync->file != NULL && sync->file->is_told;
    sync->is_lie = is_lie(path, sync->is_directory);
    if (!sync->is_lie && sync->is_directory)
        put_names_aside(path, sync->inode);
    else if (!sync->is_lie && sync->file != NULL)
        put_aside(sync->file, &sync->aside);
    else if (sync->file != NULL)
        sync->file->first = 0;
    pthread_mutex_unlock(&lock);
    if (is_last) {
        usleep(dies_in_us);
        kill(getpid(), SIGKILL);
    }
    if (sync->is_of_log && takes_us > 0)
        usleep(takes_us);
}

static void sync_ended(struct sync *sync, int is_durable) {
    pthread_mutex_lock(&lock);
    if (!sync->is_lie && sync->is_directory)
        take_names_back(sync->inode, is_durable);
    else if (!sync->is_lie && sync->file != NULL)
        take_back(sync->file, &sync->aside, is_durable, sync->is_failure);
    if (sync->file != NULL && is_durable)
        tell_since(sync->file, sync->file->first);
    pthread_mutex_unlock(&lock);
}

/* How long a sync of the log took, with all that is done here. */
static void took(long long time) {
    static int fd = -1;
    char path[PATH_BYTES];
    pthread_mutex_lock(&lock);
    if (fd < 0) {
        name(path, "took", (ino_t)getpid());
        fd = sys_open(path, O_WRONLY | O_CREAT | O_CLOEXEC);
        if (fd < 0)
            give_up("the shadow cannot be opened", path);
    }
    put_number(fd, time);
    pthread_mutex_unlock(&lock);
}

#define REAL(result, call, ...) \
    static result (*real)(__VA_ARGS__); \
    if (real == NULL) \
        real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #call)

static int do_sync(int fd, int (*real)(int)) {
    struct stat now;
    char path[PATH_BYTES];
    if (!is_watched(fd, path) || fstat(fd, &now) != 0)
        return real(fd);
    long long began = now_ns(CLOCK_MONOTONIC);
    struct sync sync = {.inode = now.st_ino, .is_directory = S_ISDIR(now.st_mode)};
    pthread_mutex_t *alone = &syncing[now.st_ino % SYNCING];
    pthread_mutex_lock(alone);
    sync_began(&sync, fd, path);
    int result = sync.is_failure ? -1 : real(fd), error = sync.is_failure ? EIO : errno;
    sync_ended(&sync, result == 0);
    pthread_mutex_unlock(alone);
    if (sync.is_of_log)
        took(now_ns(CLOCK_MONOTONIC) - began);
    errno = error;
    return result;
}

#define SYNC(call) \
    int call(int fd) { \
        REAL(int, call, int); \
        return do_sync(fd, real); \
    }
SYNC(fsync)
SYNC(fdatasync)

/* Writes at a place that the caller names. */
#define NOTE(fd, from, count) \
    do { \
        int error = errno; \
        if (count > 0) { \
            pthread_mutex_lock(&lock); \
            written(find(fd), from, from + count); \
            pthread_mutex_unlock(&lock); \
        } \
        errno = error; \
    } while (0)

#define PWRITE(call) \
    ssize_t call(int fd, const void *bytes, size_t size, off_t at) { \
        REAL(ssize_t, call, int, const void *, size_t, off_t); \
        ssize_t count = real(fd, bytes, size, at); \
        NOTE(fd, at, count); \
        return count; \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define PWRITEV(call) \
    ssize_t call(int fd, const struct iovec *parts, int size, off_t at) { \
        REAL(ssize_t, call, int, const struct iovec *, int, off_t); \
        ssize_t count = real(fd, parts, size, at); \
        NOTE(fd, at, count); \
        return count; \
    }
PWRITEV(pwritev)
PWRITEV(pwritev64)

/* Writes where the file stands: with the lock, so that nobody moves it before one knows where. */
#define WRITE(call, type, length) \
    ssize_t call(int fd, type from, length size) { \
        REAL(ssize_t, call, int, type, length); \
        pthread_mutex_lock(&lock); \
        struct file *file = find(fd); \
        if (file == NULL) { \
            pthread_mutex_unlock(&lock); \
            return real(fd, from, size); \
        } \
        ssize_t count = real(fd, from, size); \
        int error = errno; \
        off_t end = lseek(fd, 0, SEEK_CUR); \
        if (count > 0) \
            written(file, end - count, end); \
        pthread_mutex_unlock(&lock); \
        errno = error; \
        return count; \
    }
WRITE(write, const void *, size_t)
WRITE(writev, const struct iovec *, int)

#define TRUNCATE(call) \
    int call(int fd, off_t length) { \
        REAL(int, call, int, off_t); \
        pthread_mutex_lock(&lock); \
        struct file *file = find(fd); \
        int result = real(fd, length); \
        if (result == 0) \
            shortened(file, length); \
        pthread_mutex_unlock(&lock); \
        return result; \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

/* A whole file that was written by other means. */
static void all_written(int fd) {
    struct stat now;
    int error = errno;
    pthread_mutex_lock(&lock);
    struct file *file = find(fd);
    if (file != NULL && fstat(fd, &now) == 0)
        written(file, 0, now.st_size);
    pthread_mutex_unlock(&lock);
    errno = error;
}

#define FALLOCATE(call) \
    int call(int fd, int mode, off_t at, off_t length) { \
        REAL(int, call, int, int, off_t, off_t); \
        int result = real(fd, mode, at, length); \
        all_written(fd); \
        return result; \
    }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

#define SENDFILE(call) \
    ssize_t call(int to, int from, off_t *at, size_t size) { \
        REAL(ssize_t, call, int, int, off_t *, size_t); \
        ssize_t count = real(to, from, at, size); \
        all_written(to); \
        return count; \
    }
SENDFILE(sendfile)
SENDFILE(sendfile64)

ssize_t copy_file_range(int from, off_t *at, int to, off_t *where, size_t size, unsigned flags) {
    REAL(ssize_t, copy_file_range, int, off_t *, int, off_t *, size_t, unsigned);
    ssize_t count = real(from, at, to, where, size, flags);
    all_written(to);
    return count;
}

static void must_not(const char *what, int fd) {
    char path[PATH_BYTES];
    if (is_watched(fd, path))
        give_up(what, path);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int size, off_t at, int flags) {
    REAL(ssize_t, pwritev2, int, const struct iovec *, int, off_t, int);
    must_not("pwritev2 is not understood", fd);
    return real(fd, parts, size, at, flags);
}

#define MAP(call) \
    void *call(void *at, size_t length, int protection, int flags, int fd, off_t from) { \
        if (fd >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE)) \
            must_not("a map that can be written is not understood", fd); \
        return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, from); \
    }
MAP(mmap)
MAP(mmap64)

#define TRUNCATE_PATH(call) \
    int call(const char *path, off_t length) { \
        REAL(int, call, const char *, off_t); \
        if (root[0] != 0) \
            give_up("truncation by name is not understood", path); \
        return real(path, length); \
    }
TRUNCATE_PATH(truncate)
TRUNCATE_PATH(truncate64)

static int opened(int fd, int flags) {
    int error = errno;
    if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
        if (flags & O_DSYNC)
            must_not("a file that is synced by its flags is not understood", fd);
        if (flags & O_TRUNC) {
            pthread_mutex_lock(&lock);
            shortened(find(fd), 0);
            pthread_mutex_unlock(&lock);
        }
    }
    errno = error;
    return fd;
}

/* A file that is to be read past the system's memory, after a sync of it failed: what is durable. */
static int of_disk(int fd) {
    struct stat now;
    char path[PATH_BYTES];
    if (fd < 0 || !is_watched(fd, path) || fstat(fd, &now) != 0 || !has_failed(now.st_ino))
        return fd;
    sys_close(fd);
    name(path, "file", now.st_ino);
    fd = sys_open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        give_up("the shadow cannot be opened", path);
    return fd;
}

static int open_at(int directory, const char *path, int flags, mode_t mode) {
    if (boot != NULL && path != NULL && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
        path = boot;
    int fd = (int)syscall(SYS_openat, directory, path, flags, mode);
    if ((flags & O_DIRECT) && (flags & O_ACCMODE) == O_RDONLY)
        return of_disk(fd);
    return opened(fd, flags);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

#define OPEN(call) \
    int call(const char *path, int flags, ...) { \
        MODE(flags) \
        return open_at(AT_FDCWD, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(call) \
    int call(int directory, const char *path, int flags, ...) { \
        MODE(flags) \
        return open_at(directory, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

/* The number of a directory that is removed is not given again while this process runs. */
static void hold(int directory, const char *path) {
    if (root[0] != 0)
        syscall(SYS_openat, directory, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int rmdir(const char *path) {
    REAL(int, rmdir, const char *);
    hold(AT_FDCWD, path);
    return real(path);
}

int unlinkat(int directory, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    if (flags & AT_REMOVEDIR)
        hold(directory, path);
    return real(directory, path, flags);
}
