// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// rules are the rule files of Prometheus, as far as there is one here.
type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// Each alert queries existing metrics, and says what is wrong and what to do.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(observability, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var read rules
	if err := decoder.Decode(&read); err != nil {
		t.Fatal(err)
	}
	m := newMeter(t, noOptions)
	everything(t, m.Telemetry)
	known := m.scrape(t)
	seen := make(map[string]bool)
	for _, group := range read.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" || seen[r.Alert] {
				t.Errorf("the name of alert %q must be its own", r.Alert)
			}
			seen[r.Alert] = true
			r.check(t, known)
		}
	}
	if len(seen) < 8 {
		t.Errorf("there are %d alerts", len(seen))
	}
}

func (r rule) check(t *testing.T, known map[string]*family) {
	t.Helper()
	q, faults := check(r.Expr, known)
	for _, fault := range faults {
		t.Errorf("%s: %s", r.Alert, fault)
	}
	if r.For != "" {
		if _, err := model.ParseDuration(r.For); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
	}
	if s := r.Labels["severity"]; s != "warning" && s != "critical" {
		t.Errorf("%s: its severity is %q", r.Alert, s)
	}
	for _, name := range []string{"summary", "description"} {
		text, err := r.expand(r.Annotations[name], q.labels)
		if err != nil || strings.TrimSpace(text) == "" {
			t.Errorf("%s: its %s is %q: %v", r.Alert, name, text, err)
		}
	}
}

// expand is an annotation as people get to see it. A label that the alert does
// not have is an error.
func (r rule) expand(text string, labels []string) (string, error) {
	of := make(map[string]string)
	for _, label := range labels {
		of[label] = "some"
	}
	same := func(v float64) float64 { return v }
	parsed, err := template.New(r.Alert).Option("missingkey=error").
		Funcs(template.FuncMap{"humanize": same, "humanizeDuration": same, "humanizePercentage": same}).
		Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, map[string]any{"Labels": of, "Value": 0.5})
	return out.String(), err
}

// The alerts fire when they should, by the judgement of Prometheus itself.
func TestAlertsFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool; Prometheus brings it")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts_test.yaml")
	cmd.Dir = observability
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
