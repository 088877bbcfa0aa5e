// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the serving benchmark does in each of its rounds, once for each server.
const (
	servedClients = 50
	callsEach     = 40 // of a client in a round
)

const (
	versionHeader = "Mcp-Protocol-Version"
	sessions2025  = "2025-11-25" // with a session for each client
	stateless2026 = "2026-07-28" // without
)

// BenchmarkServe compares the runtime's server with the one of the bare SDK, each in a
// separate process whose CPU time counts. They alternate, so that other load on the
// machine affects both. The clients send handwritten HTTP to be cheap.
func BenchmarkServe(b *testing.B) {
	for _, served := range []struct{ name, version string }{{"sessions", sessions2025}, {"stateless", stateless2026}} {
		b.Run(served.name, func(b *testing.B) {
			sdk, consort := newLoad(b, "sdk", served.version), newLoad(b, "consort", served.version)
			for _, l := range []*load{sdk, consort} { // warms up
				l.round(b)
				l.latencies, l.wall, l.cpu = nil, 0, 0
			}
			for b.Loop() {
				sdk.round(b)
				consort.round(b)
			}
			sdk.report(b, "sdk")
			consort.report(b, "consort")
			b.ReportMetric(float64(consort.cpu)/float64(sdk.cpu), "cpu-ratio")
			b.ReportMetric(float64(consort.wall)/float64(sdk.wall), "time-ratio")
		})
	}
}

// load is the clients of one server, and their observations.
type load struct {
	server    *httpServer
	clients   []*servedClient
	wall, cpu time.Duration
	latencies []time.Duration
}

func newLoad(b *testing.B, which, version string) *load {
	b.Helper()
	l := &load{server: launchHTTP(b, which)}
	transport := &http.Transport{MaxIdleConnsPerHost: servedClients}
	b.Cleanup(transport.CloseIdleConnections)
	for range servedClients {
		c := &servedClient{http: &http.Client{Transport: transport}, url: l.server.url + "/mcp", version: version}
		if version == sessions2025 {
			if err := c.initialize(b.Context()); err != nil {
				b.Fatalf("%s: %v", which, err)
			}
		}
		l.clients = append(l.clients, c)
	}
	return l
}

// round is callsEach calls of each client, all clients side by side.
func (l *load) round(b *testing.B) {
	b.Helper()
	before, began := l.server.cpu(b), time.Now()
	seen := make([][]time.Duration, len(l.clients))
	failures := make([]error, len(l.clients))
	var all sync.WaitGroup
	for i, c := range l.clients {
		all.Go(func() { seen[i], failures[i] = c.calls(b.Context(), callsEach) })
	}
	all.Wait()
	l.wall += time.Since(began)
	l.cpu += l.server.cpu(b) - before
	if err := errors.Join(failures...); err != nil {
		b.Fatal(err)
	}
	l.latencies = append(l.latencies, slices.Concat(seen...)...)
}

func (l *load) report(b *testing.B, name string) {
	slices.Sort(l.latencies)
	n := len(l.latencies)
	b.ReportMetric(float64(n)/l.wall.Seconds(), name+"-calls/s")
	b.ReportMetric(float64(l.cpu.Microseconds())/float64(n), name+"-cpu-us/call")
	b.ReportMetric(l.latencies[n/2].Seconds()*1000, name+"-p50-ms")
	b.ReportMetric(l.latencies[n*99/100].Seconds()*1000, name+"-p99-ms")
}

// servedClient speaks just enough of the protocol to call a tool.
type servedClient struct {
	http         *http.Client
	url, version string
	session      string
	id           int
}

func (c *servedClient) calls(ctx context.Context, n int) ([]time.Duration, error) {
	var seen []time.Duration
	for range n {
		began := time.Now()
		if err := c.call(ctx); err != nil {
			return seen, err
		}
		seen = append(seen, time.Since(began))
	}
	return seen, nil
}

func (c *servedClient) call(ctx context.Context) error {
	c.id++
	text := fmt.Sprintf("what number %d says", c.id)
	meta := ""
	if c.version == stateless2026 {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + c.version +
			`","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}%s}}`, c.id, text, meta)
	answer, err := c.post(ctx, "tools/call", body)
	if err == nil && (!bytes.Contains(answer, []byte(text)) || bytes.Contains(answer, []byte(`"isError":true`))) {
		err = fmt.Errorf("the answer is %s", answer)
	}
	return err
}

// initialize opens a session (MCP 2025-11-25, basic/lifecycle).
func (c *servedClient) initialize(ctx context.Context) error {
	_, err := c.post(ctx, "initialize", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+c.version+
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return err
	}
	_, err = c.post(ctx, "notifications/initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

func (c *servedClient) post(ctx context.Context, method, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set(versionHeader, c.version)
	if c.version == stateless2026 { // SEP-2243
		request.Header.Set("Mcp-Method", method)
		request.Header.Set("Mcp-Name", echoName)
	}
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	c.session = cmp.Or(c.session, response.Header.Get("Mcp-Session-Id"))
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", response.StatusCode, answer)
	}
	return answer, err
}
