import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { freePorts } from '../support/ports.ts'
import { onPath } from '../support/on-path.ts'
import { commandOf } from '../support/programs.ts'
import { service } from '../support/services.ts'
import { collect, install } from './chaos/installation.ts'
import { operate } from './chaos/operator.ts'
import type { ProgramName } from './chaos/plant-settings.ts'

/** Starts a program in 2020, as on a board without a battery. Timers run normally. */
function in2020(command: readonly string[], more: Record<string, string> = {}): string[] {
  const library = ['-m', '-f', '+0s', 'printenv', 'LD_PRELOAD']
  const LD_PRELOAD = execFileSync(onPath('faketime')!, library, { encoding: 'utf8' }).trim()
  const clock = {
    FAKETIME: '@2020-01-01 00:00:00',
    DONT_FAKE_MONOTONIC: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  const settings = Object.entries({ ...clock, LD_PRELOAD, ...more }).map(
    ([name, value]) => `${name}=${value}`,
  )
  // The board has neither an address of the broker nor a password: it uses its enrolment.
  return ['env', '-u', 'MQTT_URL', '-u', 'MQTT_PASSWORD', ...settings, ...command]
}

service('faketime')(
  'a board whose clock says 2020 enrols, verifies the broker by TLS, and sells',
  async () => {
    const [port] = (await freePorts(1)) as [number]
    const commands = new Map<ProgramName, readonly string[]>()
    const installation = await install({
      kind: { type: 'bare' },
      commands,
      cloud: { MQTT_TLS_PORT: String(port) },
    })
    const { plant, serves, sells, come, failures } = installation
    for (const name of ['cloud-1', 'simulator'] as const) plant.start(name)
    await serves()
    const { claim_code } = await operate(plant, 'hubs', 'claim-code', '1')
    const enrol = commandOf('edge/enrolment/enrol-main')
    const request = ['--cloud', plant.cloudUrls[0]!, '--code', String(claim_code)]
    const [program, ...args] = in2020([...enrol, ...request], { STORE: plant.places.journal })
    execFileSync(program!, args)
    commands.set('hub', in2020(commandOf('edge/main')))
    plant.start('hub')
    await sells()
    const customer = await come(1)
    await customer.pay()
    await collect(installation, customer)
    expect(await operate(plant, 'hubs', 'show', '1')).toMatchObject({
      online: true,
      certificate: { serial: expect.any(String) as string },
    })
    expect(readFileSync(plant.places.log('hub'), 'utf8')).toMatch(/"time":15778\d{8},/)
    expect(failures).toEqual([])
  },
  180_000,
)
