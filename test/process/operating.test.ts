import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandsOf, readManifest } from '../../edge/packaging/manifest.ts'
import { cloudSettings } from '../../cloud/platform/settings/config.ts'
import { alarmKindNames } from '../../protocol/model/alarms.ts'
import { tables } from '../../cloud/platform/store/schema.ts'
import { settingsIn } from '../../protocol/model/program-settings.ts'
import { freePorts } from '../support/ports.ts'
import { commandOf } from '../support/programs.ts'
import { tarballOf } from '../support/release.ts'
import { service } from '../support/services.ts'

const root = resolve(import.meta.dirname, '../..')
const pages = join(root, 'cloud/docs/operating')
const names = readdirSync(pages).toSorted()
const textOf = (name: string): string => readFileSync(join(pages, name), 'utf8')

/** A block of commands of a page. */
interface Block {
  page: string
  commands: string
}
const blocks: Block[] = names.flatMap((page) =>
  [...textOf(page).matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(([, commands]) => ({
    page,
    commands: commands!,
  })),
)

let folder: string
let port: number
const at = (...parts: string[]): string => join(folder, ...parts)

/** The folders of a machine, below the test's own folder. */
const places: Readonly<Record<string, string>> = {
  '/etc/larder': 'etc',
  '/var/lib/larder': 'var',
  '/var/backups/larder': 'backups',
  '/usr/share/doc/larder-cloud/examples': 'examples',
}

const placed = (text: string): string =>
  Object.entries(places)
    .reduce((sum, [place, own]) => sum.replaceAll(place, at(own)), text)
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)

/**
 * Stand-ins for the programs that the pages call. Our own programs run unchanged, and the unit `larder-cloud`
 * is a real cloud. Programs that change the machine (packages, editors, file owners) only report their call.
 */
function layOut(): void {
  for (const name of ['bin', 'etc', 'var', 'backups', 'examples']) mkdirSync(at(name))
  mkdirSync(at('var/cloud'))
  const script = (name: string, text: string) =>
    writeFileSync(at('bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const calls = (['cloud', 'hub'] as const).flatMap((part) =>
    commandsOf(readManifest(root, part)).map(([name, program, , configuration]) => {
      const [file, subcommand = ''] = program.split(':')
      const command = commandOf(file!.replace(/\.js$/, '')).join(' ')
      return `${name}) shift; exec ${command} ${subcommand} "$@" --config ${placed(configuration)} ;;`
    }),
  )
  script(
    'larder',
    `case "$1" in\n--version) exec ${commandOf('cloud/main').join(' ')} --version ;;\n${calls.join('\n')}\nesac\necho "no such command: $1" >&2; exit 2`,
  )
  for (const name of ['apt-get', 'npm', 'ssh-keygen', 'journalctl', 'editor', 'chown']) script(name, 'exit 0')
  // Commands for another user or another file owner run without the change of user.
  script('runuser', 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
  script('install', 'for last; do :; done; mkdir -p "$last" && chmod 0700 "$last"')
  const pid = at('cloud.pid')
  script(
    'systemctl',
    `case "$*" in
*"start larder-cloud")
  larder cloud > ${at('cloud.log')} 2>&1 &
  echo $! > ${pid}
  for try in $(seq 300); do curl -fs http://127.0.0.1:${port}/readyz > /dev/null && exit 0; sleep 0.1; done
  cat ${at('cloud.log')}; exit 1 ;;
"stop larder-cloud")
  kill $(cat ${pid}); while kill -0 $(cat ${pid}) 2> /dev/null; do sleep 0.1; done; rm ${pid} ;;
esac`,
  )
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'larder-operating-'))
  const [cloudPort, brokerPort] = (await freePorts(2)) as [number, number]
  port = cloudPort
  layOut()
  const settings = {
    DATA_DIR: at('var/cloud'),
    PORT: port,
    MQTT_PORT: brokerPort,
    STORE_SECRET: 'a secret of the store for this test only',
    MEDIA_SECRET: 'a secret of the media for this test only',
  }
  writeFileSync(at('etc/cloud.json'), JSON.stringify(settings), { mode: 0o600 })
  for (const name of ['hub', 'management'])
    copyFileSync(join(root, `edge/packaging/etc/${name}.json`), at(`etc/${name}.json`))
  copyFileSync(join(root, 'simulator/hardware/demo-hub.json'), at('examples/hardware.json'))
  copyFileSync(tarballOf('2026.4.1+1b2c3d4'), at('larder-hub_2026.4.1+1b2c3d4_arm64.tar.gz'))
  // Packages without content.
  for (const name of ['SHA256SUMS.sig', 'release-key.pub', 'larder-cloud_1.deb']) writeFileSync(at(name), '')
  writeFileSync(at('SHA256SUMS'), `${createHash('sha256').digest('hex')}  larder-cloud_1.deb\n`)
}, 60_000)

afterAll(async () => {
  if (existsSync(at('cloud.pid'))) await run('systemctl stop larder-cloud')
  rmSync(folder, { recursive: true, force: true })
})

/** Runs commands in a shell that ends at the first failure. */
function run(
  commands: string,
  more: Record<string, string> = {},
): Promise<{ status: number; output: string }> {
  return new Promise((done) => {
    const env = {
      PATH: `${at('bin')}:${process.env['PATH']}`,
      STORE: at('var/hub.sqlite'),
      HARDWARE: at('etc/hardware.json'),
      AUTHORIZED_KEYS: at('etc/authorized_keys'),
      ...more,
    }
    const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', placed(commands)], { cwd: folder, env })
    let output = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    shell.once('exit', (status) => done({ status: status ?? -1, output }))
  })
}

service('operating')(
  'every command of the operating pages succeeds, in order, and the backup restores lost data',
  async () => {
    let isLost = false
    for (const block of blocks) {
      const restores = block.commands.includes('larder backup restore')
      if (restores) {
        // The restored service must have this data again, and not later data.
        expect(
          (
            await run(
              'larder keys create --owner "Springfield Vending" --name later --scopes hubs:read --hubs 1',
            )
          ).status,
        ).toBe(0)
        isLost = true
      }
      const { status, output } = await run(block.commands)
      expect([block.page, block.commands, output, status]).toEqual([block.page, block.commands, output, 0])
      if (restores) {
        expect((await run('larder hubs list')).output).toContain('Central Station')
        const keys = await run('larder keys list')
        expect(keys.output).toContain('"till"')
        expect(keys.output).not.toContain('"later"')
      }
    }
    expect(isLost).toBe(true)
  },
  900_000,
)

test('the settings, alarms, tables and pages that the operating pages name exist', () => {
  const settings = new Set(settingsIn(cloudSettings).keys())
  const [, example = '{}'] = /^```json\n([\s\S]*?)^```$/m.exec(textOf('02-configure.md')) ?? []
  const named = Object.keys(JSON.parse(example) as object)
  expect(named.filter((name) => !settings.has(name))).toEqual([])
  const kinds = new Set<string>([...alarmKindNames, ...Object.keys(tables)])
  const titles = new Set(names.map((name) => /^# (.*)$/m.exec(textOf(name))![1]!))
  for (const name of names) {
    const text = textOf(name)
    for (const [, kind] of text.matchAll(
      /`((?:payment|hub|refund|order|stream|journal|identity|database|backup)_[a-z]+)`/g,
    ))
      if (!/_(id|url)$/.test(kind!)) expect([name, kind, kinds.has(kind!)]).toEqual([name, kind, true])
    for (const [, title] of text.matchAll(/page \*([^*]+)\*/g))
      expect([name, title, titles.has(title!)]).toEqual([name, title, true])
  }
})
