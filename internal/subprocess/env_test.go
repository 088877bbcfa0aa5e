// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"slices"
	"testing"
)

func TestSafeEnv(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "planted-secret")
	t.Setenv("HTTPS_PROXY", "http://user:planted-secret@proxy")
	t.Setenv("LC_TIME", "nb_NO.UTF-8")
	t.Setenv("TERM", "() { planted; }")
	t.Setenv("HOME", "/home/someone")
	t.Setenv("TMPDIR", "/tmp/ours")

	env := SafeEnv(map[string]string{"WEATHER_API_KEY": "given", "HOME": "/srv"})
	for _, want := range []string{"LC_TIME=nb_NO.UTF-8", "TMPDIR=/tmp/ours", "WEATHER_API_KEY=given", "HOME=/srv"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	if !slices.IsSorted(env) {
		t.Errorf("not sorted: %q", env)
	}
	for _, name := range []string{"OPENAI_API_KEY", "HTTPS_PROXY", "TERM"} {
		if got := lookupEnv(env, name); got != "" {
			t.Errorf("%s was inherited as %q", name, got)
		}
	}
	if lookupEnv(env, "PATH") == "" {
		t.Error("PATH is missing")
	}
	if lookupEnv(env, "HOME") != "/srv" {
		t.Error("what is given does not win")
	}
}
