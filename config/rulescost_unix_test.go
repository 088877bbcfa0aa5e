// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// BenchmarkRules compares the CPU time and the allocations of a call over HTTP with and
// without 50 rules, in rounds of random order. It reports the medians, and their ratios as
// cpu-ratio and alloc-ratio.
func BenchmarkRules(b *testing.B) {
	var rules strings.Builder
	for i := range 50 {
		fmt.Fprintf(&rules, "[[serve.rules]]\naction = \"deny\"\nclients = [\"ad*\"]\nwhen = '\"ops\" in trusted.roles'\ntools = [\"delete_*\", \"tool%d\"]\n", i)
	}
	const client = "[serve]\nhttp = \"127.0.0.1:0\"\n[[serve.clients]]\nname = \"ada\"\ntoken = \"ada-0123456789abcdef\"\ntrusted = {roles = {value = '[\"dev\"]', json = true}}\n"
	calls := []func(){caller(b, client), caller(b, client+rules.String())}
	type cost struct{ cpu, mallocs []float64 }
	costs := make([]cost, len(calls))
	const perRound = 400
	for b.Loop() {
		for _, i := range rand.Perm(len(calls)) {
			before, cpu := mallocs(), cpuTime(b)
			for range perRound {
				calls[i]()
			}
			costs[i].cpu = append(costs[i].cpu, (cpuTime(b)-cpu)/perRound)
			costs[i].mallocs = append(costs[i].mallocs, float64(mallocs()-before)/perRound)
		}
	}
	median := func(of []float64) float64 {
		slices.Sort(of)
		return of[len(of)/2]
	}
	without, with := costs[0], costs[1]
	b.ReportMetric(median(without.cpu)*1e6, "µs-without")
	b.ReportMetric(median(with.cpu)*1e6, "µs-with")
	b.ReportMetric(median(with.cpu)/median(without.cpu), "cpu-ratio")
	b.ReportMetric(median(without.mallocs), "allocs-without")
	b.ReportMetric(median(with.mallocs)/median(without.mallocs), "alloc-ratio")
}

// caller returns a function that calls a tool of a server with a configuration.
func caller(b *testing.B, text string) func() {
	b.Helper()
	c, err := config.Parse("consort.toml", []byte(text), nil)
	if err != nil {
		b.Fatal(err)
	}
	tool, err := invoker.Raw(invoker.Definition{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context,
		*invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts("done")}, nil
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	assembly, err := config.Assemble(c, &config.AssembleOptions{Ensembles: []*ensemble.Ensemble{ensemble.Local("own", tool)}})
	if err != nil {
		b.Fatal(err)
	}
	srv := mcpserver.New(assembly.Roster, assembly.Serve)
	web := httptest.NewServer(srv.Handler())
	b.Cleanup(func() {
		web.Close()
		_ = srv.Close(context.Background())
		_ = assembly.Close(context.Background())
	})
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"own__echo","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	return func() {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, web.URL, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer ada-0123456789abcdef", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "own__echo",
		} {
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		said, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(said), "done") {
			b.Fatalf("%s %s %v", response.Status, said, err)
		}
	}
}

func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// cpuTime returns the processor time of this process, in seconds.
func cpuTime(b *testing.B) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
