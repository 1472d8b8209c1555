package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// sampleSession makes the lines of one session in January 2026. There are few
// busy clients and popular pages and many others, and requests fail at times,
// mostly so at three in the night. A session in a hundred has a broken line.
func sampleSession(number int64) []string {
	random := rand.New(rand.NewPCG(uint64(number), 0))
	skewed := func(n float64) int {
		x := random.Float64()
		return int(x * x * x * n)
	}
	client := skewed(1 << 24)
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(31*24*3600)) * time.Second)
	var lines []string
	for range 1 + random.IntN(19) {
		status := 200
		switch chance := random.IntN(100); {
		case chance < 2:
			status = 404
		case chance == 2, chance < 10 && at.Hour() == 3:
			status = 500
		}
		lines = append(lines, fmt.Sprintf(`10.%d.%d.%d - - [%s] "GET /page/%d?session=%d HTTP/1.1" %d %d "-" "Mozilla/5.0 (sample)"`,
			client>>16, client>>8&255, client&255, at.Format("02/Jan/2006:15:04:05 -0700"), skewed(1000), number,
			status, 200+random.IntN(20000)))
		at = at.Add(time.Duration(1+random.IntN(300)) * time.Second)
	}
	if random.IntN(100) == 0 {
		lines = append(lines, lines[0][:len(lines[0])/2])
	}
	return lines
}
