// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var deploy = filepath.Join("..", "..", "..", "docs", "deploy")

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	configAt  = "/etc/consort/consort.toml"
	deskToken = "DESK_TOKEN=choose-words-of-your-own"
)

// gateway is a run of a deployed gateway on this machine.
type gateway struct {
	config      string   // the text of the configuration
	args        []string // after the name of the program
	environment []string
}

// run starts the gateway with other ports, waits until it is ready, asks the paths of
// its health, and ends it with SIGTERM.
func (g gateway) run(t *testing.T, paths ...string) {
	t.Helper()
	command, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(g.args, configAt) {
		t.Fatalf("the arguments %q do not name %s", g.args, configAt)
	}
	if strings.Contains(g.config, "required = true") && !strings.Contains(g.config, "park_after = 0") {
		t.Error("a required server that is parked keeps /readyz at 503 until a person revives it")
	}
	here := func(text string) string { // with free ports
		return regexp.MustCompile(`(127\.0\.0\.1|0\.0\.0\.0):(8080|8081)`).ReplaceAllString(text, "$1:0")
	}
	file := filepath.Join(t.TempDir(), "consort.toml")
	if err := os.WriteFile(file, []byte(here(g.config)), 0o600); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, arg := range g.args {
		args = append(args, here(strings.ReplaceAll(arg, configAt, file)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(cleanEnvironment(), append(g.environment,
		"PATH="+filepath.Dir(command)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	lines := bufio.NewReader(io.TeeReader(stderr, &notes))
	port := func(of string) string {
		at := regexp.MustCompile(of + ` at http://\S+:(\d+)/`)
		for {
			line, err := lines.ReadString('\n')
			if found := at.FindStringSubmatch(line); found != nil {
				return found[1]
			}
			if err != nil {
				t.Fatalf("the gateway ended: %v\n%s", cmd.Wait(), &notes)
			}
		}
	}
	health, mcp := "http://127.0.0.1:"+port("health"), "http://127.0.0.1:"+port("serving")
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		ended <- cmd.Wait()
	}()
	for status := 0; status != http.StatusOK; status = statusOf(ctx, health+"/readyz") {
		select {
		case err := <-ended:
			t.Fatalf("the gateway ended: %v\n%s", err, &notes)
		case <-ctx.Done():
			t.Fatal("the gateway is not ready in time")
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, path := range paths {
		if status := statusOf(ctx, health+path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status := statusOf(ctx, mcp+"/mcp"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, &notes)
	}
}

// statusOf returns the status of a GET; 0 if there is no answer.
func statusOf(ctx context.Context, url string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// The command line of the unit serves, with the configuration of the packages.
func TestUnitServes(t *testing.T) {
	unit := deployed(t, "consort.service")
	line := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/consort (.+)$`).FindStringSubmatch(unit)
	if line == nil {
		t.Fatal("no ExecStart")
	}
	gateway{config: deployed(t, "consort.toml"), args: strings.Fields(line[1]), environment: []string{deskToken}}.run(t, "/livez", "/readyz")
}

// The command line of the image serves at all addresses, whatever the configuration says.
func TestContainerServes(t *testing.T) {
	text := deployed(t, "Containerfile")
	instruction := func(name string) (words []string) {
		line := regexp.MustCompile(`(?m)^` + name + ` (.+)$`).FindStringSubmatch(text)
		if line == nil || json.Unmarshal([]byte(line[1]), &words) != nil {
			t.Fatalf("%s is %q", name, line)
		}
		return words
	}
	if entry := instruction("ENTRYPOINT"); !slices.Equal(entry, []string{"/usr/bin/consort"}) {
		t.Errorf("the entry point is %q", entry)
	}
	args := instruction("CMD")
	if !slices.Contains(args, "0.0.0.0:8080") || !slices.Contains(args, "0.0.0.0:8081") || !strings.Contains(text, "\nEXPOSE 8080 8081\n") {
		t.Errorf("the ports of %q are not those of EXPOSE", args)
	}
	gateway{config: deployed(t, "consort.toml"), args: args, environment: []string{deskToken}}.run(t, "/livez", "/readyz")
}

// The types of Kubernetes that the manifest uses, with the fields that it uses: a
// misspelt field is an error.
type (
	manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name   string
			Labels map[string]string
		}
		Data map[string]string // of a ConfigMap
		Spec struct {
			Replicas int
			Selector yaml.Node
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     pod
			}
			Ports []struct {
				Name       string
				Port       int
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	pod struct {
		TerminationGracePeriodSeconds int  `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  bool `yaml:"automountServiceAccountToken"`
		SecurityContext               struct {
			RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
			RunAsUser      int                   `yaml:"runAsUser"`
			RunAsGroup     int                   `yaml:"runAsGroup"`
			FSGroup        int                   `yaml:"fsGroup"`
			SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		Containers []container
		Volumes    []struct {
			Name      string
			ConfigMap struct{ Name string } `yaml:"configMap"`
			EmptyDir  map[string]string     `yaml:"emptyDir"`
		}
	}
	container struct {
		Name, Image string
		Args        []string
		EnvFrom     []struct {
			SecretRef struct{ Name string } `yaml:"secretRef"`
		} `yaml:"envFrom"`
		Env   []struct{ Name, Value string }
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		LivenessProbe  probe `yaml:"livenessProbe"`
		ReadinessProbe probe `yaml:"readinessProbe"`
		Lifecycle      struct {
			PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
		}
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
			Capabilities             struct{ Drop []string }
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	probe struct {
		HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
		PeriodSeconds    int                         `yaml:"periodSeconds"`
		FailureThreshold int                         `yaml:"failureThreshold"`
	}
)

// The manifest names what it has: its parts, ports and volumes. Its configuration and
// arguments serve, and its probes are answered.
func TestKubernetesServes(t *testing.T) {
	decoder := yaml.NewDecoder(strings.NewReader(deployed(t, "kubernetes.yaml")))
	decoder.KnownFields(true)
	parts := map[string]manifest{}
	for {
		var part manifest
		err := decoder.Decode(&part)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if part.Metadata.Name != "consort" {
			t.Errorf("%s has the name %q", part.Kind, part.Metadata.Name)
		}
		parts[part.Kind] = part
	}
	template := parts["Deployment"].Spec.Template
	if len(template.Spec.Containers) != 1 {
		t.Fatalf("%d containers", len(template.Spec.Containers))
	}
	c := template.Spec.Containers[0]
	checkPod(t, template.Spec, c)
	for kind, where := range map[string]func(*yaml.Node) error{
		"Deployment": func(n *yaml.Node) error {
			var selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			err := n.Decode(&selector)
			return errors.Join(err, contained(selector.MatchLabels, template.Metadata.Labels))
		},
		"Service": func(n *yaml.Node) error {
			var selector map[string]string
			err := n.Decode(&selector)
			return errors.Join(err, contained(selector, template.Metadata.Labels))
		},
	} {
		selector := parts[kind].Spec.Selector
		if err := where(&selector); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range parts["Service"].Spec.Ports {
		if ports[p.TargetPort] != 8080 {
			t.Errorf("the Service leads to the port %d", ports[p.TargetPort])
		}
	}
	if ports[c.LivenessProbe.HTTPGet.Port] != 8081 || ports[c.ReadinessProbe.HTTPGet.Port] != 8081 {
		t.Errorf("the probes %+v and %+v do not ask the health", c.LivenessProbe, c.ReadinessProbe)
	}
	if len(c.EnvFrom) != 1 || c.EnvFrom[0].SecretRef.Name != "consort" {
		t.Errorf("the variables come from %+v, not from the Secret that the guide creates", c.EnvFrom)
	}
	g := gateway{config: parts["ConfigMap"].Data["consort.toml"], args: c.Args, environment: []string{deskToken}}
	g.run(t, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path)
}

// checkPod checks that a Pod is restricted, has time to end, and mounts its volumes.
func checkPod(t *testing.T, p pod, c container) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range p.Volumes {
		volumes[v.Name] = true
	}
	state := "/var/lib" // in the image
	for _, variable := range c.Env {
		if variable.Name == "XDG_STATE_HOME" {
			state = variable.Value
		}
	}
	for _, mount := range c.VolumeMounts {
		if mount.MountPath == state+"/consort" { // everyone may write to it, so consort reload trusts no folder in it
			t.Errorf("the folder of the state is the volume %q itself", mount.Name)
		}
		if !volumes[mount.Name] {
			t.Errorf("no volume %q", mount.Name)
		}
	}
	if p.TerminationGracePeriodSeconds < c.Lifecycle.PreStop.Sleep.Seconds+30+10 {
		t.Errorf("%d s are too few", p.TerminationGracePeriodSeconds)
	}
	if s := c.SecurityContext; !p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser != 65532 || !s.ReadOnlyRootFilesystem ||
		s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || p.AutomountServiceAccountToken {
		t.Errorf("the Pod is not restricted: %+v, %+v", p.SecurityContext, s)
	}
}

func contained(some, all map[string]string) error {
	if len(some) == 0 {
		return errors.New("selects everything")
	}
	for name, value := range some {
		if all[name] != value {
			return errors.New("selects nothing: " + name)
		}
	}
	return nil
}
