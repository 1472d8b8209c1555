// Command tasks is a job of many empty tasks. It prints how long they took.
//
//	quern run internal/bench/tasks [TASKS]
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/quern-project/quern/sdk/quern"
)

func main() {
	log.SetFlags(0)
	tasks := 100_000
	if len(os.Args) > 1 {
		var err error
		if tasks, err = strconv.Atoi(os.Args[1]); err != nil {
			log.Fatalf("tasks: the number of tasks: %v", err)
		}
	}
	ctx, err := quern.NewContext(quern.AppName("empty tasks"))
	if err != nil {
		log.Fatal(err)
	}
	empty := ctx.Range(0, 0, 1, tasks)
	start := time.Now()
	if _, err := empty.Count(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(time.Since(start).Nanoseconds())
}
