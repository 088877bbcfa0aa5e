#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// Starts the program of this platform, which is in an optional dependency of this package.
"use strict";
const { execFileSync, spawn } = require("node:child_process");
const { readFileSync } = require("node:fs");
const os = require("node:os");

const name = `@consort-go/consort-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "consort.exe" : "consort";
let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`consort: the package ${name} is not installed. Install @consort-go/consort again without --omit=optional; ` +
    "if there is no such package, build the program with Go: go install github.com/consort-go/consort/cmd/consort@latest");
  process.exit(1);
}

const isWindows = process.platform === "win32";

// inForeground reports whether this process, and so the program, is in the foreground of a
// terminal. Linux has the answer in /proc: images such as node:slim and node:alpine have no ps
// that could give it.
function inForeground() {
  try {
    const [group, foreground] = (process.platform === "linux"
      ? readFileSync("/proc/self/stat", "utf8").replace(/.*\) \S+ \S+ (\S+) \S+ \S+ (\S+).*/s, "$1 $2")
      : execFileSync("ps", ["-o", "pgid=", "-o", "tpgid=", "-p", String(process.pid)], // detached: another Ctrl-C does not end it
        { encoding: "utf8", detached: true, timeout: 1000, stdio: ["ignore", "pipe", "ignore"] })).trim().split(/\s+/);
    return group === foreground;
  } catch {
    return false;
  }
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends Ctrl-C to all processes in its foreground, so the program gets it itself;
// this process only has to stay. Other signals are for this process, so it passes them on; but
// not on Windows, where the program gets all events of the console itself, and kill would end
// it without closing.
for (const signal of ["SIGINT", "SIGQUIT"]) {
  process.on(signal, () => isWindows || inForeground() || child.kill(signal));
}
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => isWindows || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`consort: ${error.message}`);
  process.exit(1);
});
child.on("exit", (status, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : status));
