import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../edge/config.ts'
import { edgeSettings } from '../../protocol/settings/hub.ts'
import { defaultHubSettings } from '../../protocol/settings/hub-limits.ts'
import { settingsIn } from '../../protocol/model/program-settings.ts'

let folder = ''
const file = (name: string, content: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}
const hardware = {
  hubId: 4,
  controllers: [{ id: 'bins', port: '/dev/bins', devices: [{ kind: 'bin', number: 1 }] }],
  gpio: { chipLabel: 'pinctrl', lines: [{ name: 'main_lock', offset: 3, direction: 'out' }] },
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'larder-config-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function problems(environment: Record<string, string>, ...args: string[]): string[] {
  const result = readConfig(args, environment)
  if (result.kind !== 'problems') throw new Error(`expected problems, got ${result.kind}`)
  return result.problems
}

describe("the hub's configuration", () => {
  it('relative ports of the hub are relative to its data folder, as in the simulator', () => {
    const controllers = ['/dev/bins', 'ports/left'].map((port, index) => ({
      ...hardware.controllers[0]!,
      id: `c${index}`,
      port,
      devices: [{ kind: 'bin', number: index + 1 }],
    }))
    const result = readConfig([], {
      HARDWARE: file('relative.json', { ...hardware, controllers }),
      MQTT_PASSWORD: 'secret',
      STORE: '/var/lib/larder/hub.sqlite',
    })
    expect(result).toMatchObject({
      config: { hardware: { controllers: [{ port: '/dev/bins' }, { port: '/var/lib/larder/ports/left' }] } },
    })
  })

  it('the hub needs two settings, and has a default for the others', () => {
    const result = readConfig([], { HARDWARE: file('hub.json', hardware), MQTT_PASSWORD: 'secret' })
    expect(result).toMatchObject({
      kind: 'config',
      config: {
        hardware: { hubId: 4 },
        mqtt: { url: ['mqtt://127.0.0.1:18830'], password: 'secret' },
        local: { host: '127.0.0.1', port: 8081 },
        gpio: { kind: 'onoff' },
        hub: defaultHubSettings,
      },
    })
  })

  it('settings of the cloud precede the configuration file, and the environment precedes them', () => {
    const config = file('config.json', { HARDWARE: file('hub.json', hardware), LOG_LEVEL: 'error' })
    const environment = { MQTT_PASSWORD: 'secret', GPIO: 'none' }
    const read = (settings: Record<string, string>, described: object | null = null) =>
      readConfig(['--config', config], environment, () => ({
        version: 2,
        settings,
        hardware: described as Record<string, unknown> | null,
      }))
    expect(read({ LOG_LEVEL: 'debug', GPIO: 'onoff' }, { ...hardware, hubId: 5 })).toMatchObject({
      config: { logLevel: 'debug', gpio: { kind: 'none' }, hardware: { hubId: 5 } },
    })
    expect(read({ NO_SUCH: '1' })).toMatchObject({
      problems: [expect.stringContaining('NO_SUCH (desired state): a hub has no such setting') as string],
    })
    expect(read({}, { hubId: 0 })).toMatchObject({ kind: 'problems' })
  })

  it('the hub reads settings from a file, and the environment takes precedence', () => {
    const config = file('config.json', {
      HARDWARE: file('hub.json', hardware),
      MQTT_PASSWORD: 'secret',
      PORT: 9000,
      GPIO: 'unix:/run/gpio.sock',
      DISPENSE_MAX_MS: 12_000,
    })
    expect(readConfig(['--config', config], { PORT: '9001' })).toMatchObject({
      config: {
        local: { port: 9001 },
        gpio: { kind: 'socket', address: { path: '/run/gpio.sock' } },
        hub: { core: { maxMs: { dispense: 12_000 } } },
      },
    })
  })

  it('the hub sends passwords and tokens over an unencrypted network only with a named permission', () => {
    const base = { HARDWARE: file('hub.json', hardware), MQTT_PASSWORD: 'secret' }
    for (const [environment, setting, name] of [
      [{ MQTT_URL: 'mqtt://broker.example' }, 'MQTT_URL', 'plain-mqtt'],
      [{ HOST: '0.0.0.0' }, 'HOST', 'plain-http'],
    ] as const) {
      const given = { ...base, ...environment }
      expect(problems(given)).toEqual([expect.stringMatching(new RegExp(`^${setting}: .*=${name} `))])
      expect(readConfig([], { ...given, ALLOW_INSECURE: name }).kind).toBe('config')
    }
    expect(readConfig([], { ...base, MQTT_URL: 'mqtts://a.example,mqtts://b.example' })).toMatchObject({
      config: { mqtt: { url: ['mqtts://a.example', 'mqtts://b.example'] } },
    })
    expect(problems({ ...base, MQTT_URL: 'mqtts://a.example,mqtt://b.example' })).toHaveLength(1)
    const pem = { LOCAL_CERT: file('cert.pem', 'cert'), LOCAL_KEY: file('key.pem', 'key') }
    expect(readConfig([], { ...base, ...pem, HOST: '0.0.0.0' })).toMatchObject({
      config: { local: { cert: 'cert', key: 'key' } },
    })
    expect(problems({ ...base, LOCAL_CERT: pem.LOCAL_CERT })).toEqual([expect.stringContaining('LOCAL_KEY')])
  })

  it('every wrong or missing setting of the hub is named', () => {
    expect(problems({ MQTT_PASSWORD: 'secret', STORE: join(folder, 'hub.sqlite') })).toEqual([
      expect.stringContaining('HARDWARE'),
    ])
    const base = { HARDWARE: file('hub.json', hardware), MQTT_PASSWORD: 'secret' }
    for (const [name, value] of [
      ['PORT', '80x'],
      ['PORT', '70000'],
      ['GPIO', 'serial'],
      ['MQTT_URL', 'http://cloud'],
      ['LOCAL_TOKEN', 'short'],
      ['LOG_LEVEL', 'loud'],
      ['DISPENSE_MAX_MS', '600001'],
      ['MQTT_CA', '/nowhere.pem'],
    ] as const)
      expect(problems({ ...base, [name]: value })).toEqual([expect.stringContaining(name)])
  })

  it('a wrong hardware description is reported with its problems', () => {
    const MQTT_PASSWORD = 'secret'
    expect(problems({ MQTT_PASSWORD, HARDWARE: join(folder, 'none.json') })[0]).toMatch(/HARDWARE.*ENOENT/)
    expect(problems({ MQTT_PASSWORD, HARDWARE: file('bad.json', '{') })[0]).toMatch(
      /HARDWARE.*not valid JSON/,
    )
    const twice = { ...hardware, controllers: [...hardware.controllers, ...hardware.controllers] }
    expect(problems({ MQTT_PASSWORD, HARDWARE: file('twice.json', twice) })).toEqual([
      expect.stringContaining('bin-1 is described twice'),
      expect.stringContaining('controller ids repeat'),
    ])
  })

  it('unknown arguments and unknown names in the file are refused', () => {
    expect(problems({}, '--port', '80')[0]).toContain('--port')
    expect(problems({}, '--config')[0]).toContain('--config')
    expect(problems({}, '--config', join(folder, 'none.json'))[0]).toMatch(/--config.*ENOENT/)
    expect(problems({}, '--config', file('typo.json', { PORTT: 1 }))).toContainEqual(
      expect.stringContaining('PORTT'),
    )
  })

  it('the hub’s help lists every setting with --all', () => {
    const result = readConfig(['--help', '--all'], {})
    if (result.kind !== 'help') throw new Error('no help')
    const names = [...settingsIn(edgeSettings).keys()]
    expect(names).toEqual(expect.arrayContaining(['HARDWARE', 'MQTT_CA', 'LOCAL_TOKEN', 'DOOR_MAX_MS']))
    for (const name of names) expect(result.text).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
  })
})
