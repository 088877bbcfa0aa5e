// SPDX-License-Identifier: Apache-2.0

package wire

// The protocol versions that a client asks for by name: the newest, and the last one of
// the older kind, with a handshake. A server that is asked for Legacy may answer with an
// older one.
const (
	Modern = "2026-07-28"
	Legacy = "2025-11-25"
)

// KnownVersion returns version if it is a published version of the protocol, otherwise
// "". An invented version must not become an attribute of metrics, where each value
// creates a new series.
func KnownVersion(version string) string {
	switch version {
	case "2024-11-05", "2025-03-26", "2025-06-18", Legacy, Modern:
		return version
	}
	return ""
}
