// Command sort sorts text records of 100 bytes by their first ten, as the sort
// benchmark does, and makes and checks such records like its gensort and
// valsort.
//
//	quern run --allow-write data jobs/sort gen -n 10000000 data/records
//	quern run --allow-write data jobs/sort sort data/records data/sorted
//	quern run jobs/sort validate data/sorted
//
// gen writes the records number 0 to n-1, which are the same whatever -parts
// says. sort takes any text, in partitions as large as those of its input unless
// -parts says how many; lines whose keys are equal stay in their order. validate
// prints a checksum that does not depend on the order, so that of sorted records
// equals that of their input, and ends with exit code 1 if a record is out of
// order.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/quern-project/quern/sdk/quern"
)

const usage = `usage: sort gen [-n RECORDS] [-parts P] OUT
       sort sort [-parts P] IN OUT
       sort validate IN`

func main() {
	log.SetFlags(0)
	log.SetPrefix("sort: ")
	ctx, err := quern.NewContext(quern.AppName("sort"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx *quern.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("sort "+args[0], flag.ExitOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage); flags.PrintDefaults() }
	records := flags.Int64("n", 1_000_000, "`number` of records to make")
	parts := flags.Int("parts", 0, "`number` of partitions (default: one for every 32 MiB)")
	flags.Parse(args[1:])
	switch paths := flags.Args(); {
	case args[0] == "gen" && len(paths) == 1:
		return generate(ctx, *records, *parts, paths[0])
	case args[0] == "sort" && len(paths) == 2:
		return sortFile(ctx, paths[0], *parts, paths[1])
	case args[0] == "validate" && len(paths) == 1:
		return validate(ctx, paths[0], out)
	}
	return errors.New(usage)
}

func generate(ctx *quern.Context, records int64, parts int, path string) error {
	if records < 0 || parts < 0 {
		return errors.New("the numbers of records and of partitions cannot be negative")
	}
	if parts == 0 {
		parts = int(records*recordSize>>25) + 1
	}
	return ctx.Range(0, records, 1, parts).Map(record).SaveAsTextFile(path)
}

func sortFile(ctx *quern.Context, in string, parts int, out string) error {
	lines := ctx.TextFile(in)
	if parts == 0 {
		return lines.SortBy(keyOf, true).SaveAsTextFile(out)
	}
	return lines.SortBy(keyOf, true, parts).SaveAsTextFile(out)
}

func validate(ctx *quern.Context, path string, out io.Writer) error {
	s, err := summarize(ctx.TextFile(path))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Records: %d\nChecksum: %016x\nDuplicate keys: %d\n", s.Records, s.Checksum, s.Duplicates)
	if s.Disordered > 0 {
		return fmt.Errorf("%d records are out of order, the first one is record %d", s.Disordered, s.FirstDisordered)
	}
	fmt.Fprintln(out, "SUCCESS - all records are in order")
	return nil
}

func summarize(lines quern.RDD[string]) (*summary, error) {
	return lines.Aggregate(&summary{}, (*summary).add, (*summary).merge)
}
