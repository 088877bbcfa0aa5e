// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker/telemetry"
)

var noOptions telemetry.Options

var observability = filepath.Join("..", "..", "..", "docs", "observability")

// dashboard is what Grafana needs of one.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type string
	Datasource datasource
	Query      json.RawMessage
}

type datasource struct{ Type, UID string }

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ X, Y, W, H int }
	Datasource datasource
	Targets    []struct {
		RefID, Expr, LegendFormat string
		Datasource                datasource
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(observability, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The dashboard is one that Grafana takes, for any Prometheus.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(d.Panels) == 0 {
		t.Errorf("it is called %q (%q), of version %d, and has %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	source := datasource{"prometheus", "${datasource}"}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" && v.Datasource != source {
			t.Errorf("the variable %s asks %v", v.Name, v.Datasource)
		}
	}
	if want := []string{"datasource", "job", "ensemble", "model"}; !slices.Equal(variables, want) {
		t.Errorf("the variables are %q, want %q", variables, want)
	}
	ids, titles := make(map[int]bool), make(map[string]bool)
	for i, p := range d.Panels {
		if p.ID <= 0 || ids[p.ID] || p.Title == "" || titles[p.Title+p.Type] && p.Type == "row" {
			t.Errorf("panel %d, %q, has the id %d, which must be its own", i, p.Title, p.ID)
		}
		ids[p.ID], titles[p.Title+p.Type] = true, true
		if g := p.GridPos; g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("%s is at %v", p.Title, g)
		}
		for _, other := range d.Panels[:i] {
			if overlap(p, other) {
				t.Errorf("%q and %q are in one place", p.Title, other.Title)
			}
		}
		if p.Type != "row" {
			targets(t, p, source)
		}
	}
}

func overlap(a, b panel) bool {
	return a.GridPos.X < b.GridPos.X+b.GridPos.W && b.GridPos.X < a.GridPos.X+a.GridPos.W &&
		a.GridPos.Y < b.GridPos.Y+b.GridPos.H && b.GridPos.Y < a.GridPos.Y+a.GridPos.H
}

func targets(t *testing.T, p panel, source datasource) {
	t.Helper()
	if len(p.Targets) == 0 || p.Datasource != source {
		t.Errorf("%s has %d queries of %v", p.Title, len(p.Targets), p.Datasource)
	}
	refs := make(map[string]bool)
	for _, target := range p.Targets {
		if target.RefID == "" || refs[target.RefID] || target.Expr == "" || target.Datasource != source {
			t.Errorf("%s: the query %q (%q) of %v", p.Title, target.RefID, target.Expr, target.Datasource)
		}
		refs[target.RefID] = true
	}
}

var dollar = regexp.MustCompile(`\$\{?(\w+)`)

// Whatever the dashboard asks for is measured, and whatever is measured can be
// seen on it.
func TestDashboardShowsWhatIsMeasured(t *testing.T) {
	m := newMeter(t, noOptions)
	everything(t, m.Telemetry)
	known := m.scrape(t)
	d := readDashboard(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	shown := make(map[string]bool)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			q, faults := check(plain(t, p.Title, target.Expr, variables), known)
			for _, fault := range faults {
				t.Errorf("%s: %s", p.Title, fault)
			}
			for _, label := range legend(target.LegendFormat) {
				if !slices.Contains(q.labels, label) {
					t.Errorf("%s: the legend wants %s, the result has %q", p.Title, label, q.labels)
				}
			}
			for _, name := range q.metrics {
				shown[base(name)] = true
			}
		}
	}
	for name := range known {
		if !shown[base(name)] && !strings.HasPrefix(name, "target_info") && !strings.HasPrefix(name, "otel_scope_info") {
			t.Errorf("%s is measured, and on no panel", name)
		}
	}
	variablesAsk(t, d, known, variables)
	allMeasured(t, m)
}

// base is the name of a metric without what its samples are called.
func base(name string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// plain puts values in the place of Grafana's variables, which must be there.
func plain(t *testing.T, where, expression string, variables []string) string {
	t.Helper()
	for _, match := range dollar.FindAllStringSubmatch(expression, -1) {
		if match[1] != "__rate_interval" && !slices.Contains(variables, match[1]) {
			t.Errorf("%s: there is no variable %s", where, match[0])
		}
	}
	return strings.ReplaceAll(expression, "$__rate_interval", "5m")
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// variablesAsk checks the queries of the variables.
func variablesAsk(t *testing.T, d dashboard, known map[string]*family, variables []string) {
	t.Helper()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		var asked struct{ Query string }
		if err := json.Unmarshal(v.Query, &asked); err != nil {
			t.Fatal(err)
		}
		match := labelValues.FindStringSubmatch(asked.Query)
		if match == nil {
			t.Errorf("the variable %s asks %q", v.Name, asked.Query)
			continue
		}
		q, faults := check(plain(t, v.Name, match[1], variables), known)
		if faults != nil || !slices.Contains(q.labels, match[2]) {
			t.Errorf("the variable %s: %q; it wants %s of %q", v.Name, faults, match[2], q.labels)
		}
	}
}

// allMeasured fails when the tests know of an instrument that measured nothing.
func allMeasured(t *testing.T, m *meter) {
	t.Helper()
	families := make(map[string]bool)
	for name := range m.scrape(t) {
		families[base(name)] = true
	}
	for _, name := range m.instruments.names {
		escaped := strings.ReplaceAll(name, ".", "_")
		if !families[escaped] && !families[escaped+"_seconds"] && !families[escaped+"_total"] {
			t.Errorf("%s was made, and measured nothing in this test", name)
		}
	}
}
