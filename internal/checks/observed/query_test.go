// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// ofPrometheus are the labels that come with the scrape.
var ofPrometheus = []string{"job", "instance"}

// closed are the labels whose values are all known.
var closed = []string{"consort_ensemble_state", "consort_turn_reason", "gen_ai_token_type", "mcp_method_name"}

// query is an expression that was held against the metrics there are.
type query struct {
	metrics []string // whose samples it asks for
	labels  []string // that its result has
}

// check parses an expression and returns its errors.
func check(expression string, known map[string]*family) (query, []string) {
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		return query{}, []string{err.Error()}
	}
	c := &checker{known: known}
	q := query{labels: c.labels(parsed)}
	slices.Sort(c.metrics)
	q.metrics = slices.Compact(c.metrics)
	return q, c.faults
}

type checker struct {
	known   map[string]*family
	metrics []string
	faults  []string
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// labels returns the labels that the result of an expression may have.
func (c *checker) labels(expression parser.Expr) []string {
	switch e := expression.(type) {
	case *parser.VectorSelector:
		return c.selector(e)
	case *parser.AggregateExpr:
		inner := c.labels(e.Expr)
		if e.Without {
			return without(inner, e.Grouping...)
		}
		for _, label := range e.Grouping {
			if !slices.Contains(inner, label) {
				c.fault("it is grouped by %s, which %s does not have", label, e.Expr)
			}
		}
		return e.Grouping
	case *parser.Call:
		return c.call(e)
	case *parser.BinaryExpr:
		left, right := c.labels(e.LHS), c.labels(e.RHS)
		if e.Op == parser.LOR || left == nil {
			return append(left, right...)
		}
		return left
	case *parser.ParenExpr:
		return c.labels(e.Expr)
	case *parser.MatrixSelector:
		return c.labels(e.VectorSelector)
	case *parser.SubqueryExpr:
		return c.labels(e.Expr)
	case *parser.UnaryExpr:
		return c.labels(e.Expr)
	}
	return nil // a number, a text
}

// call checks which functions are valid for which metrics.
func (c *checker) call(e *parser.Call) []string {
	var all []string
	for _, arg := range e.Args {
		all = append(all, c.labels(arg)...)
	}
	switch e.Func.Name {
	case "rate", "increase", "irate":
		for _, name := range c.of(e) {
			if family := c.known[name]; family != nil && family.kind == dto.MetricType_GAUGE {
				c.fault("%s of %s, which is a gauge", e.Func.Name, name)
			}
		}
	case "histogram_quantile":
		if !slices.Contains(all, "le") {
			c.fault("a histogram_quantile without le")
		}
		return without(all, "le")
	}
	return all
}

// of are the names of the metrics below an expression.
func (c *checker) of(expression parser.Expr) (names []string) {
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names = append(names, metricsOf(selector)...)
		}
		return nil
	})
	return names
}

// metricsOf are the names that a selector may match, which must be spelled out.
func metricsOf(e *parser.VectorSelector) []string {
	for _, matcher := range e.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			return strings.Split(matcher.Value, "|")
		}
	}
	return []string{e.Name}
}

func (c *checker) selector(e *parser.VectorSelector) []string {
	var all []string
	for _, name := range metricsOf(e) {
		c.metrics = append(c.metrics, name)
		family := c.known[name]
		if family == nil {
			c.fault("there is no metric %s", name)
			continue
		}
		all = append(append(all, slices.Collect(maps.Keys(family.labels))...), ofPrometheus...)
		for _, matcher := range e.LabelMatchers {
			c.matcher(name, matcher)
		}
	}
	return all
}

func (c *checker) matcher(metric string, m *labels.Matcher) {
	values, ok := c.known[metric].labels[m.Name]
	switch {
	case m.Name == model.MetricNameLabel || slices.Contains(ofPrometheus, m.Name):
		return
	case !ok:
		c.fault("%s has no label %s", metric, m.Name)
	case slices.Contains(closed, m.Name):
		for wanted := range strings.SplitSeq(m.Value, "|") {
			if wanted != "" && !slices.Contains(values, wanted) {
				c.fault("%s of %s is never %q", m.Name, metric, wanted)
			}
		}
	}
}

func without(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(label string) bool { return slices.Contains(some, label) })
}

var placeholder = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// legend returns the labels that a legend of Grafana names.
func legend(format string) (named []string) {
	for _, match := range placeholder.FindAllStringSubmatch(format, -1) {
		named = append(named, match[1])
	}
	return named
}

// The checker must find errors.
func TestWrongQueriesAreFound(t *testing.T) {
	m := newMeter(t, noOptions)
	everything(t, m.Telemetry)
	known := m.scrape(t)
	for expression, want := range map[string]string{
		`sum(rate(gen_ai_turns_total[5m]))`:                                                       "no metric",
		`consort_ensemble_calls{ensemble="x"}`:                                                    "no label ensemble",
		`sum by (tool) (consort_ensemble_calls)`:                                                  "grouped by tool",
		`consort_ensemble_states{consort_ensemble_state=~"lost|gone"}`:                            `never "gone"`,
		`rate(consort_ensemble_calls[5m])`:                                                        "a gauge",
		`histogram_quantile(0.5, sum(rate(gen_ai_client_operation_duration_seconds_bucket[5m])))`: "without le",
		`sum by (le (rate(gen_ai_client_operation_duration_seconds_bucket[5m]))`:                  "parse error",
		`histogram_quantile(0.5, sum by (le) (gen_ai_client_operation_duration_bucket))`:          "no metric",
		`{__name__=~"consort_ensemble_states|consort_gone"}`:                                      "no metric consort_gone",
		`sum by (consort_ensemble) (sum by (job) (consort_ensemble_calls))`:                       "grouped by consort_ensemble",
		`sum(consort_ensemble_tools) / sum by (gen_ai_tool_name) (consort_ensemble_tools_aside)`:  "grouped by gen_ai_tool_name",
	} {
		if _, faults := check(expression, known); !strings.Contains(strings.Join(faults, "\n"), want) {
			t.Errorf("%s: %q, want %q", expression, faults, want)
		}
	}
	good := `sum by (job, consort_ensemble_state) (consort_ensemble_states{consort_ensemble=~"a.*"}) > 0`
	if q, faults := check(good, known); faults != nil || !slices.Equal(q.labels, []string{"job", "consort_ensemble_state"}) {
		t.Errorf("%s: %q, %q", good, q.labels, faults)
	}
}
