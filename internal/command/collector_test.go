// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/hex"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// collector is an OTLP collector over HTTP and gRPC that records what it receives.
type collector struct {
	collectortrace.UnimplementedTraceServiceServer
	http, grpc string // where it is, as URLs

	mu      sync.Mutex
	spans   []*trace.Span
	metrics []*metrics.Metric
	about   map[string]string // the resource
	headers []string          // x-key of each request
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{about: map[string]string{}}
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(server, c)
	collectormetrics.RegisterMetricsServiceServer(server, metricsOf{collector: c})
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	c.http, c.grpc = web.URL, "http://"+listener.Addr().String()
	return c
}

// ServeHTTP implements OTLP/HTTP (OTLP 1.11, § OTLP/HTTP Request).
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	ctx := metadata.NewIncomingContext(r.Context(), metadata.Pairs("x-key", r.Header.Get("X-Key")))
	switch r.URL.Path {
	case "/v1/traces":
		var request collectortrace.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		c.Export(ctx, &request)
	case "/v1/metrics":
		var request collectormetrics.ExportMetricsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		metricsOf{collector: c}.Export(ctx, &request)
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no protobuf", http.StatusBadRequest)
	}
}

func (c *collector) Export(ctx context.Context, request *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, metadata.ValueFromIncomingContext(ctx, "x-key")...)
	for _, of := range request.ResourceSpans {
		maps.Copy(c.about, texts(of.Resource.Attributes))
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

// metricsOf is the collector's other service.
type metricsOf struct {
	collectormetrics.UnimplementedMetricsServiceServer
	collector *collector
}

func (m metricsOf) Export(_ context.Context, request *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	m.collector.mu.Lock()
	defer m.collector.mu.Unlock()
	for _, of := range request.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			m.collector.metrics = append(m.collector.metrics, scope.Metrics...)
		}
	}
	return &collectormetrics.ExportMetricsServiceResponse{}, nil
}

// texts are attributes that are strings.
func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}

// paths returns the path of each span, from its root, sorted, and the ids of the traces.
func (c *collector) paths(t *testing.T) (paths, traces []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]*trace.Span{}
	for _, span := range c.spans {
		byID[string(span.SpanId)] = span
		if id := hex.EncodeToString(span.TraceId); !slices.Contains(traces, id) {
			traces = append(traces, id)
		}
	}
	for _, span := range c.spans {
		path := span.Name
		for at := span; len(at.ParentSpanId) > 0; {
			parent := byID[string(at.ParentSpanId)]
			if parent == nil {
				path = "? > " + path
				break
			}
			if string(parent.TraceId) != string(at.TraceId) {
				t.Errorf("%s is of another trace than its parent", at.Name)
			}
			path, at = parent.Name+" > "+path, parent
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, traces
}

// all is everything that was sent, as text.
func (c *collector) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, span := range c.spans {
		b.WriteString(span.String() + "\n")
	}
	for _, m := range c.metrics {
		b.WriteString(m.String() + "\n")
	}
	return b.String()
}

func (c *collector) measured(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.metrics, func(m *metrics.Metric) bool { return m.Name == name })
}
