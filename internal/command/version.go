// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: runE(func(context.Context, []string) error {
			_, err := fmt.Fprintf(p.screen, "consort %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

// release is the version of a release; the build of releases sets it (-ldflags -X).
var release string

// version returns the version of the release, or else the module version that the go
// command recorded in the build.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
