// A guest that does what a test tells it: it asks the host function "next" what
// to do, does it, and reports the result, until it is told to end.

#define QUERN(name) __attribute__((import_module("quern"), import_name(#name)))
#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

typedef unsigned u;
typedef long long i64;

QUERN(yield) void quern_yield(void);
QUERN(context_open) i64 context_open(u, u);
QUERN(conf_get) i64 conf_get(u, u, u, u);
QUERN(rdd_define) i64 rdd_define(u, u);
QUERN(job_run) i64 job_run(u, u);
QUERN(job_next) i64 job_next(u, u, u);
QUERN(job_close) i64 job_close(u);
QUERN(task_info) i64 task_info(u, u);
QUERN(port_open) i64 port_open(u, u, u);
QUERN(port_read) i64 port_read(u, u, u);
QUERN(port_write) i64 port_write(u, u, u);
QUERN(port_close) i64 port_close(u);
QUERN(task_fail) i64 task_fail(u, u, u);
QUERN(last_error) i64 last_error(u, u);
QUERN(log) i64 quern_log(u, u, u);
WASI(proc_exit) void proc_exit(u);
WASI(fd_write) u fd_write(u fd, u vectors, u count, u written);

// The test's own: next leaves what to do and its parameters at the address
// given.
QUERN(next) void next(u command);
QUERN(report) void report(i64 result);

static volatile u command[5];
static volatile u counter;

// recurse calls itself without end; it uses none of the linear memory's stack.
static u recurse(u n) {
  u r = recurse(n + 1);
  counter = r;
  return r;
}

static i64 obey(void) {
  for (;;) {
    next((u)command);
    u a = command[1], b = command[2], c = command[3], d = command[4];
    i64 r = 0;
    switch (command[0]) { // as the constants in puppet.go
    case 0: return (i64)b << 32 | a;
    case 1: r = context_open(a, b); break;
    case 2: r = conf_get(a, b, c, d); break;
    case 3: r = rdd_define(a, b); break;
    case 4: r = job_run(a, b); break;
    case 5: r = job_next(a, b, c); break;
    case 6: r = job_close(a); break;
    case 7: r = task_info(a, b); break;
    case 8: r = port_open(a, b, c); break;
    case 9: r = port_read(a, b, c); break;
    case 10: r = port_write(a, b, c); break;
    case 11: r = port_close(a); break;
    case 12: r = task_fail(a, b, c); break;
    case 13: r = last_error(a, b); break;
    case 14: r = quern_log(a, b, c); break;
    case 15: for (;;) counter++;
    case 16: r = __builtin_wasm_memory_grow(0, a); break;
    case 17: __builtin_trap();
    case 18: r = recurse(a); break;
    case 19: proc_exit(a);
    case 20: r = fd_write(a, b, c, d); break;
    }
    report(r);
  }
}

void _start(void) { quern_yield(); obey(); }

i64 quern_task_1(u kind, u id, u partition) { return obey(); }
