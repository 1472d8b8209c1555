// Kernels for measuring what safepoints cost compiled C. Each returns a
// checksum, so that nothing is optimised away.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define QUERN(name) __attribute__((import_module("quern"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

QUERN("yield") void quern_yield(void);

// Imported by every job, called by none: the host inserts the calls.
EXPORT("keep_yield") void keep_yield(void) { quern_yield(); }

static uint32_t next(uint32_t *s) { return *s = *s * 1664525u + 1013904223u; }

// scan is the worst case: a loop of a few instructions.
EXPORT("scan") int64_t scan(int32_t n) {
	static unsigned char text[1 << 16];
	uint32_t seed = 1;
	for (int i = 0; i < (int)sizeof text; i++) text[i] = next(&seed) >> 24;
	int64_t words = 0;
	for (int k = 0; k < n; k++) {
		int in = 0;
#pragma clang loop unroll(disable) vectorize(disable)
		for (int i = 0; i < (int)sizeof text; i++) {
			int space = text[i] <= ' ';
			words += space & in;
			in = !space;
		}
	}
	return words;
}

static int compare(const void *a, const void *b) {
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

// sort calls a comparison through a pointer.
EXPORT("sort") int64_t sort(int32_t n) {
	uint32_t *a = malloc(n * sizeof *a), seed = 2;
	for (int i = 0; i < n; i++) a[i] = next(&seed);
	qsort(a, n, sizeof *a, compare);
	int64_t sum = 0;
	for (int i = 0; i < n; i++) sum = sum * 31 + a[i];
	free(a);
	return sum;
}

EXPORT("fib") int64_t fib(int32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

EXPORT("matmul") int64_t matmul(int32_t n) {
	double *a = malloc(3 * n * n * sizeof *a), *b = a + n * n, *c = b + n * n;
	for (int i = 0; i < n * n; i++) a[i] = i, b[i] = n * n - i;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double s = 0;
			for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
			c[i * n + j] = s;
		}
	int64_t r = (int64_t)c[n * n / 2];
	free(a);
	return r;
}

// hash fills and probes an open-addressing table.
EXPORT("hash") int64_t hash(int32_t n) {
	uint32_t mask = 1 << 16, *t = calloc(mask, sizeof *t), seed = 3;
	mask--;
	int64_t steps = 0;
	for (int i = 0; i < n; i++) {
		uint32_t key = next(&seed) >> 17 | 1, h = key * 2654435761u & mask;
		while (t[h] && t[h] != key) h = (h + 1) & mask, steps++;
		t[h] = key;
	}
	free(t);
	return steps;
}

// copy moves many small pieces of memory.
EXPORT("copy") int64_t copy(int32_t n) {
	static char from[4096], to[4096];
	uint32_t seed = 4;
	for (int i = 0; i < n; i++) {
		uint32_t len = next(&seed) >> 24;
		memcpy(to + (len & 63), from + (len >> 2), len + 16);
		from[len] = (char)i;
	}
	return to[100];
}
