// A contestant of the benchmark in Go; docs/benchmarks.md says what it is asked. Built twice, with
// zookeeper.go and with etcd.go, each of which brings its own dial().
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// One lock in the hands of one worker.
type locker interface {
	lock() error
	unlock() error
}

// A session, or whatever the peer has in its place.
type session interface {
	locker(path string) locker
	close()
}

// In per mille; the driver has the same list.
var quantiles = []int{0, 10, 50, 100, 200, 250, 300, 400, 500,
	600, 700, 750, 800, 900, 950, 990, 999, 1000}

const (
	warmUp = iota
	measured
	over
)

// While all warm up: measured sections are empty, and two at a time would hardly ever meet.
const section = 200 * time.Microsecond

type options map[string]string

func (o options) text(name, otherwise string) string {
	if value, there := o[name]; there {
		return value
	}
	return otherwise
}

func (o options) number(name string, otherwise float64) float64 {
	value, err := strconv.ParseFloat(o.text(name, fmt.Sprint(otherwise)), 64)
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func processorS() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func residentKb() int {
	status, err := os.ReadFile("/proc/self/status")
	must(err)
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			value, _ := strconv.Atoi(strings.Fields(line)[1])
			return value
		}
	}
	return 0
}

func sleep(seconds float64) { time.Sleep(time.Duration(seconds * float64(time.Second))) }

// Locks and unlocks until told otherwise; returns the latencies in microseconds.
func work(lock locker, inside, violations, phase *int32) []float64 {
	var latencies []float64
	for {
		now := atomic.LoadInt32(phase)
		if now == over {
			return latencies
		}
		start := time.Now()
		must(lock.lock())
		if atomic.AddInt32(inside, 1) != 1 {
			atomic.AddInt32(violations, 1)
		}
		if now == warmUp {
			time.Sleep(section)
		}
		atomic.AddInt32(inside, -1)
		must(lock.unlock())
		if now == measured {
			latencies = append(latencies, float64(time.Since(start).Nanoseconds())/1e3)
		}
	}
}

func pairs(o options) map[string]interface{} {
	each := int(o.number("workers", 1))
	one := o.text("locks", "own") == "one"
	count := int(o.number("sessions", 1)) * each
	inside := make([]int32, count)
	var violations, phase int32
	results := make(chan []float64, count)
	var open session
	for i := 0; i < count; i++ {
		if i%each == 0 {
			open = dial(o)
		}
		number := i
		if one {
			number = 0
		}
		lock := open.locker(fmt.Sprintf("%s/%d", o["path"], number))
		go func() { results <- work(lock, &inside[number], &violations, &phase) }()
	}
	sleep(o.number("warmup", 1))
	fmt.Println("begin")
	processor := processorS()
	start := time.Now()
	atomic.StoreInt32(&phase, measured)
	sleep(o.number("seconds", 1))
	atomic.StoreInt32(&phase, over)
	seconds := time.Since(start).Seconds()
	processor = processorS() - processor
	var all []float64
	fewest, most := -1, 0
	for i := 0; i < count; i++ {
		own := <-results
		all = append(all, own...)
		if fewest < 0 || len(own) < fewest {
			fewest = len(own)
		}
		if len(own) > most {
			most = len(own)
		}
	}
	sort.Float64s(all)
	points := []float64{}
	for _, point := range quantiles {
		if len(all) > 0 {
			points = append(points, all[(len(all)-1)*point/1000])
		}
	}
	return map[string]interface{}{"ops": len(all), "samples": len(all), "seconds": seconds,
		"cpu_s": processor, "rss_kb": residentKb(), "quantiles_us": points, "fewest": fewest,
		"most": most, "violations": violations}
}

// Holds locks until the driver says go.
func hold(o options) map[string]interface{} {
	open := dial(o)
	defer open.close()
	held := int(o.number("held", 1))
	for i := 0; i < held; i++ {
		must(open.locker(fmt.Sprintf("%s/%d", o["path"], i)).lock())
	}
	fmt.Println("begin")
	bufio.NewReader(os.Stdin).ReadString('\n')
	return map[string]interface{}{"ops": held, "rss_kb": residentKb(), "violations": 0}
}

func main() {
	o := options{}
	for i := 1; i+1 < len(os.Args); i += 2 {
		o[strings.TrimPrefix(os.Args[i], "--")] = os.Args[i+1]
	}
	var result map[string]interface{}
	switch o["workload"] {
	case "pairs":
		result = pairs(o)
	case "hold":
		result = hold(o)
	default:
		must(fmt.Errorf("no workload %s", o["workload"]))
	}
	line, err := json.Marshal(result)
	must(err)
	fmt.Println(string(line))
}
