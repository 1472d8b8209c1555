// The C guest of the sandbox's tests.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOST(name) __attribute__((import_module("quern"), import_name(#name)))

HOST(yield) void quern_yield(void);
HOST(act) int64_t act(int32_t n);
HOST(emit) void emit(const void *p, int32_t n);
HOST(block) void block(void);

static int counter = 5;
static char *text;
static volatile int never;
volatile int spin;

volatile int one = 1;

// The call stack proper, outside linear memory, overflows.
__attribute__((noinline)) static int deep(int n) { return deep(n + one) + one; }

// The stack in linear memory, which C has for what has an address, overflows.
__attribute__((noinline)) static int wide(volatile int *p) {
	volatile int here[16];
	here[0] = *p + 1;
	return wide(here) + here[0];
}

__attribute__((export_name("quern_task_1")))
int64_t quern_task_1(int32_t kind, int32_t id, int32_t partition) {
	int zero = 0;
	switch (id) {
	case 0:
		return partition;
	case 1: // what the driver left, changed by this task alone
		counter += partition;
		text[0]++;
		emit(text, strlen(text));
		return counter;
	case 2:
		exit(7);
	case 3:
		__builtin_trap();
	case 4:
		for (;;) spin++;
	case 5:
		return deep(0);
	case 12:
		return wide(&zero);
	case 6: { // an allocation that fails is used nevertheless
		for (;;) {
			char *p = malloc(1 << 20);
			if (!p) __builtin_trap();
			memset(p, 1, 1 << 20);
		}
	}
	case 7:
		sleep(3600);
		return 0;
	case 8: { // counts the allocations that fit
		int n = 0;
		while (malloc(1 << 20)) n++;
		return n;
	}
	case 9: { // dirties memory beyond the image
		char *p = malloc(partition << 16);
		for (int i = 0; i < partition << 16; i++)
			if (p[i] == 77) return -1;
		memset(p, 77, partition << 16);
		return (int64_t)__builtin_wasm_memory_size(0);
	}
	case 10:
		return *(volatile int *)(intptr_t)(__builtin_wasm_memory_size(0) << 16);
	case 11:
		printf("out %d\n", partition);
		fflush(stdout);
		close(1);
		return 0;
	}
	return -1;
}

int main(int argc, char **argv) {
	if (never) quern_yield();
	text = malloc(16);
	strcpy(text, "apple");
	counter = 40;
	act(0);
	counter = 100;
	text[0] = 'z';
	act(1);
	return argc > 1 ? atoi(argv[1]) : 0;
}
