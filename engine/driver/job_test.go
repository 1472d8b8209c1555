package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/quern-project/quern/engine/dag"
)

// Results come in any order, and are read with buffers of any size; what is read
// is all batches in the order of the partitions, never a part of one.
func TestResultsAreReadInOrderAsWholeBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.SliceOfN(rapid.SliceOfN(rapid.StringN(0, 5, 5), 0, 4), 1, 6).Draw(t, "batches of each partition")
		order := rapid.Permutation(numbers(len(partitions))).Draw(t, "order of arrival")
		j := newJob(1, len(partitions), nil)
		deliver := func(i int) {
			r := &dag.JobResult{Index: i}
			for _, b := range partitions[i] {
				r.Result = append(r.Result, []byte(b))
			}
			j.deliver(r)
		}
		var want []string // those that are not empty
		for _, p := range partitions {
			for _, b := range p {
				if b != "" {
					want = append(want, b)
				}
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // so that next does not wait
		read := 0
		for {
			if len(order) > 0 && rapid.Bool().Draw(t, "one more arrives") {
				deliver(order[0])
				order = order[1:]
				if len(order) == 0 {
					j.end(nil)
				}
				continue
			}
			buf := make([]byte, rapid.IntRange(0, 12).Draw(t, "room"))
			n, err := j.next(ctx, buf)
			switch {
			case err == io.EOF:
				if len(order) > 0 || len(want) > 0 {
					t.Fatalf("the end, but %q is left", want)
				}
				return
			case errors.Is(err, context.Canceled) && len(order) > 0:
			case err != nil:
				t.Fatal(err)
			case n > len(buf):
				if len(want) == 0 || len(want[0]) != n {
					t.Fatalf("the next batch has %d bytes, want %q", n, want)
				}
			default:
				for rest := string(buf[:n]); rest != ""; {
					if len(want) == 0 || len(want[0]) > len(rest) || rest[:len(want[0])] != want[0] {
						t.Fatalf("read %q, want %q", rest, want)
					}
					rest, want = rest[len(want[0]):], want[1:]
				}
			}
			if read++; read > 1000 {
				t.Fatal("no end")
			}
		}
	})
}

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestAFailedJobAnswersItsErrorAndNoMoreResults(t *testing.T) {
	j := newJob(1, 2, nil)
	j.deliver(&dag.JobResult{Index: 0, Result: [][]byte{[]byte("a")}})
	failed := errors.New("job 1 failed")
	j.end(failed)
	j.end(errors.New("a later end"))
	for range 2 {
		if n, err := j.next(t.Context(), make([]byte, 10)); err != failed || n != 0 {
			t.Errorf("next answers %d, %v", n, err)
		}
	}
}

func TestWaitingForAResultEndsWithTheContext(t *testing.T) {
	why := fmt.Errorf("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := newJob(1, 1, nil).next(ctx, nil); err != why {
		t.Errorf("next answers %v", err)
	}
}
