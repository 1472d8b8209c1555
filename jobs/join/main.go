// Command join says how much each customer has ordered.
//
//	quern run jobs/join CUSTOMERS ORDERS
//
// CUSTOMERS are text files with a line "id,name" for each customer, ORDERS with
// a line "id,customer,cents" for each order. The output has a line
// "id,name,orders,cents" for each customer with orders, in the order of the
// ids. Orders of unknown customers are left out.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/quern-project/quern/sdk/quern"
)

// Account is what is known of a customer in the end.
type Account struct {
	Name   string
	Orders int
	Cents  int64
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: join CUSTOMERS ORDERS")
	}
	ctx, err := quern.NewContext(quern.AppName("join"))
	if err != nil {
		log.Fatal(err)
	}
	accounts, err := join(ctx, os.Args[1], os.Args[2]).Collect()
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range accounts {
		fmt.Printf("%d,%s,%d,%d\n", a.Key, a.Value.Name, a.Value.Orders, a.Value.Cents)
	}
}

func join(ctx *quern.Context, customers, orders string) quern.PairRDD[int64, Account] {
	names := ctx.TextFile(customers).MapToPair(func(line string) (int64, string) {
		id, name, _ := strings.Cut(line, ",")
		return number(line, id), name
	})
	sums := ctx.TextFile(orders).
		MapToPair(func(line string) (int64, Account) {
			_, rest, _ := strings.Cut(line, ",")
			customer, cents, _ := strings.Cut(rest, ",")
			return number(line, customer), Account{Orders: 1, Cents: number(line, cents)}
		}).
		ReduceByKey(func(a, b Account) Account {
			return Account{Orders: a.Orders + b.Orders, Cents: a.Cents + b.Cents}
		})
	return sums.
		Join(names, func(sum Account, name string) Account {
			sum.Name = name
			return sum
		}).
		SortByKey(true)
}

// number parses a field of a line. A task that meets a bad line fails, and the
// job with it, with this text.
func number(line, field string) int64 {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("line %q: %q is not a number", line, field))
	}
	return n
}
