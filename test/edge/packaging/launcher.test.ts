import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

/** A hub's package with the real launcher, and a release. Each prints its name and its user. */
function world() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-launcher-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const script = (path: string, ...lines: string[]): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), `#!/bin/sh\n${lines.join('\n')}\n`, { mode: 0o755 })
  }
  const commands = ['edge', 'management', 'updater', 'enroll', 'doctor']
  script('lib/hub/bin/node', 'echo "package as ${DROPPED-root}"')
  writeFileSync(
    join(folder, 'lib/hub/larder.commands'),
    commands.map((name) => `${name} main.js - /nowhere A sentence\n`).join(''),
  )
  cpSync('edge/packaging/larder', join(folder, 'lib/hub/larder'))
  script('releases/1/hub/larder', 'echo "release as ${DROPPED-root}"')
  symlinkSync('1', join(folder, 'releases/current'))
  // The machine has root and the user of the services.
  script('tools/id', 'echo 0')
  script('tools/setpriv', 'shift 3', 'DROPPED=larder exec "$@"')
  const env = {
    PATH: `${join(folder, 'tools')}:${process.env['PATH']}`,
    LARDER_RELEASES: join(folder, 'releases'),
  }
  const run = (command: string, ...args: string[]): string =>
    execFileSync(join(folder, 'lib/hub/larder'), [command, ...args], { env, encoding: 'utf8' }).trim()
  return { commands, run }
}

test('root starts a release only as the user of the services, and never for the updater or the management service', () => {
  const { commands, run } = world()
  expect(commands.map((command) => [command, run(command)])).toEqual([
    ['edge', 'release as larder'],
    ['management', 'package as larder'],
    ['updater', 'package as larder'],
    ['enroll', 'release as larder'],
    ['doctor', 'release as larder'],
  ])
  expect(run('management', '--host-key')).toBe('package as larder')
})
