// SPDX-License-Identifier: Apache-2.0

// Package config reads a program's configuration from TOML.
package config
