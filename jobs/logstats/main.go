// Command logstats says what visitors did, from the log of a web server.
//
//	quern run jobs/logstats LOG
//	quern run --allow-write data jobs/logstats gen -sessions 100000 data/log
//
// LOG are text files in the combined log format, as Apache and nginx write it,
// in any order; lines that are none are counted and left out. A session is what
// one client requests with pauses of up to 30 minutes. The output has totals,
// sessions, the pages that were requested most, and for each hour of the day,
// as the server's clock shows it, the share of requests that failed.
//
// gen writes a sample: so many sessions of ten requests on average, always the
// same ones, and a broken line now and then.
//
// It shows grouping by a key, and an aggregate of many figures in one pass.
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

const usage = `usage: logstats LOG
       logstats gen [-sessions N] [-parts P] OUT`

func main() {
	log.SetFlags(0)
	log.SetPrefix("logstats: ")
	ctx, err := quern.NewContext(quern.AppName("logstats"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx *quern.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "gen" {
		return generate(ctx, args[1:])
	}
	if len(args) != 1 {
		return errors.New(usage)
	}
	s, err := statisticsOf(ctx.TextFile(args[0]))
	if err != nil {
		return err
	}
	s.print(out)
	return nil
}

func generate(ctx *quern.Context, args []string) error {
	flags := flag.NewFlagSet("logstats gen", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage); flags.PrintDefaults() }
	sessions := flags.Int64("sessions", 10_000, "`number` of sessions to make")
	parts := flags.Int("parts", 8, "`number` of partitions")
	flags.Parse(args)
	if flags.NArg() != 1 {
		return errors.New(usage)
	}
	return ctx.Range(0, *sessions, 1, *parts).FlatMap(sampleSession).SaveAsTextFile(flags.Arg(0))
}
