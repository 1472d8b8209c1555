package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quern-project/quern/sdk/quern"
)

func newContext(t *testing.T) *quern.Context {
	t.Helper()
	ctx, err := quern.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// write makes a file of lines in a new folder.
func write(t *testing.T, lines []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAccountsAgreeWithALoopOverAllOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var customers, orders []string
	accounts := make([]Account, 300) // the last hundred are unknown
	for id := range 200 {
		accounts[id].Name = fmt.Sprintf("Customer, No. %d", id)
		customers = append(customers, fmt.Sprintf("%d,%s", id, accounts[id].Name))
	}
	for order := range 1000 {
		customer, cents := random.IntN(len(accounts)), random.Int64N(100_000)
		accounts[customer].Orders++
		accounts[customer].Cents += cents
		orders = append(orders, fmt.Sprintf("%d,%d,%d", order, customer, cents))
	}
	want := []quern.Pair[int64, Account]{}
	for id, a := range accounts {
		if a.Name != "" && a.Orders > 0 {
			want = append(want, quern.Pair[int64, Account]{Key: int64(id), Value: a})
		}
	}
	random.Shuffle(len(customers), func(i, j int) { customers[i], customers[j] = customers[j], customers[i] })

	got, err := join(newContext(t), write(t, customers), write(t, orders)).Collect()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("accounts (-want +got):\n" + diff)
	}
}

func TestABadLineIsNamed(t *testing.T) {
	_, err := join(newContext(t), write(t, []string{"1,Ada"}), write(t, []string{"1,1,10", "2,one,20"})).Collect()
	if err == nil || !strings.Contains(err.Error(), `line "2,one,20": "one" is not a number`) {
		t.Errorf("error %v", err)
	}
}
