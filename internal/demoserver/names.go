// SPDX-License-Identifier: Apache-2.0

package demoserver

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Names returns the names of the servers.
func Names() []string { return []string{"atlas", "satchel"} }

// New returns the server with the given name, or nil if the name is unknown. Most tools
// take as long as pace.
func New(name string, pace time.Duration) *mcp.Server {
	switch name {
	case "atlas":
		return Atlas(pace)
	case "satchel":
		return Satchel(pace)
	}
	return nil
}
