// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

// syncFolder does nothing: folders cannot be synced here.
func syncFolder(string) error { return nil }
