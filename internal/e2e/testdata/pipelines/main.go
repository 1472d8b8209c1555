// Command pipelines builds random pipelines and compares what they answer with
// the same computation on slices in its own memory.
//
//	pipelines [-save FOLDER] FIRST COUNT
//
// Each of COUNT pipelines follows from its seed, the first from FIRST. For each
// a line says what it was made of and a hash of all that it answered, so that
// two runs can be compared; one that answers wrongly ends the program.
//
// The computation on slices knows the order of elements, and which partition
// they are in, as far as that is promised: after an operation that keeps them
// where they are, it is exact. What a shuffle by hash makes of them is looked up
// once, checked against all that is promised of it (each key in one partition,
// keys in order, the values of a key in order), and taken over.
package main

import (
	"fmt"
	"hash/fnv"
	"log"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	log.SetFlags(0)
	args := os.Args[1:]
	save := ""
	if len(args) > 1 && args[0] == "-save" {
		save, args = args[1], args[2:]
	}
	if len(args) != 2 {
		log.Fatal("usage: pipelines [-save FOLDER] FIRST COUNT")
	}
	first, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	count, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	ctx, err := quern.NewContext(quern.AppName("random pipelines"))
	if err != nil {
		log.Fatal(err)
	}
	for seed := first; seed < first+count; seed++ {
		p := &pipeline{ctx: ctx, Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed}
		if save != "" {
			p.save = path.Join(save, strconv.FormatUint(seed, 10))
		}
		p.run()
		fmt.Printf("%d %016x %s\n", seed, p.answers, strings.Join(p.steps, " "))
	}
}

// pipeline is one of them.
type pipeline struct {
	ctx *quern.Context
	*rand.Rand
	seed    uint64
	save    string // a folder to save to and read back; "" if nothing may be written
	saved   int
	steps   []string
	answers uint64 // a hash of all that was answered
}

// collection is an RDD of any kind with what should be in it.
type collection interface {
	// step is one more operation, at random.
	step(p *pipeline) collection
	// ask runs an action, at random, and compares what it answers.
	ask(p *pipeline)
	// settle compares all elements, and takes over their order where that was
	// not promised.
	settle(p *pipeline)
}

func (p *pipeline) run() {
	var c collection
	switch p.IntN(4) {
	case 0:
		c = source[int64](p)
	case 1:
		c = source[word](p)
	case 2:
		c = source[point](p)
	default:
		c = source[record](p)
	}
	for range 2 + p.IntN(9) {
		c = c.step(p)
		if p.IntN(3) == 0 {
			c.settle(p)
		}
	}
	c.settle(p)
	for range 3 {
		c.ask(p)
	}
}

// did notes a step.
func (p *pipeline) did(format string, args ...any) {
	p.steps = append(p.steps, fmt.Sprintf(format, args...))
}

// wrong ends the program.
func (p *pipeline) wrong(format string, args ...any) {
	log.Fatalf("pipeline %d, %s: %s", p.seed, strings.Join(p.steps, " "), fmt.Sprintf(format, args...))
}

// no ends the program if an action fails.
func (p *pipeline) no(err error) {
	if err != nil {
		p.wrong("%v", err)
	}
}

// answered compares an answer, and makes it part of the hash.
func (p *pipeline) answered(what string, got, want any) {
	g, w := show(got), show(want)
	if g != w {
		p.wrong("%s answers\n%s\nwant\n%s", what, g, w)
	}
	h := fnv.New64a()
	fmt.Fprint(h, p.answers, what, g)
	p.answers = h.Sum64()
}

// parts is a number of partitions.
func (p *pipeline) parts() int { return 1 + p.IntN(5) }

// show writes a value so that two of them are the same exactly if their texts
// are.
func show(v any) string { return fmt.Sprintf("%#v", v) }

// number is a hash of any value.
func number(v any) uint64 {
	h := fnv.New64a()
	h.Write([]byte(show(v)))
	x := h.Sum64()
	return x ^ x>>32
}
