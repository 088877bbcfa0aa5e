// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// inheritedEnv are the variables that a server inherits: those of the official SDKs,
// the locale and the directory for temporary files. None holds a secret. Proxy
// variables may, so they must be set explicitly.
var inheritedEnv = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TZ",
	"LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP",
}

// inheritedEnvWindows is the list for Windows, where programs do not start without some
// of them.
var inheritedEnvWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT",
	"TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// SafeEnv returns the complete environment of a server: the inherited variables of this
// program, and extra, which overrides them. It is sorted by name.
func SafeEnv(extra map[string]string) []string {
	env := make(map[string]string)
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if inherits(name) && !strings.HasPrefix(value, "()") { // an exported shell function is code
			env[envKey(name)] = value
		}
	}
	for name, value := range extra {
		env[envKey(name)] = value
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

func inherits(name string) bool {
	if runtime.GOOS == "windows" {
		return slices.Contains(inheritedEnvWindows, envKey(name))
	}
	return strings.HasPrefix(name, "LC_") || slices.Contains(inheritedEnv, name)
}

// envKey returns name in a form that is equal for equal variables: on Windows, case
// does not matter.
func envKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// lookupEnv returns the last value of a variable in a list of NAME=value.
func lookupEnv(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if key, value, _ := strings.Cut(entry, "="); envKey(key) == name {
			return value
		}
	}
	return ""
}
