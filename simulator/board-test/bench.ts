import {
  deviceId,
  type ControllerDescription,
  type DeviceDescription,
} from '../../protocol/model/hardware.ts'
import type { Action } from '../../protocol/serial/frames.ts'
import { Broken, expect, Host, Unasked, type HostOptions, type Outcome, type Result } from './host.ts'
import { spawn } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline/promises'

type Kind = DeviceDescription['kind']
type Place = { shelf: number; row: number; bin: number }

/** The time for the first reports of a session. */
const REPORTS_MS = 3000

/** A board under test: its host, its description, its power. */
export class Bench {
  readonly host: Host
  readonly description: ControllerDescription
  readonly power: Power | undefined
  readonly hubId: number
  /** An image for this board, newer than its firmware (SPEC §12). */
  readonly image: Uint8Array | undefined
  #next = 0

  constructor(
    options: HostOptions & {
      description: ControllerDescription
      hubId: number
      power?: Power | undefined
      image?: Uint8Array | undefined
    },
  ) {
    this.host = new Host(options)
    this.description = options.description
    this.hubId = options.hubId
    this.power = options.power
    this.image = options.image
  }

  devices<K extends Kind>(kind: K): Extract<DeviceDescription, { kind: K }>[] {
    return this.description.devices.filter((device) => device.kind === kind) as Extract<
      DeviceDescription,
      { kind: K }
    >[]
  }

  /** The first device of a kind. Throws `Unasked` if there is none. */
  device(kind: Kind): string {
    const [device] = this.devices(kind)
    if (!device) throw new Unasked(`this controller has no ${kind}`)
    return deviceId(device)
  }

  /** A device that no controller of a hub has. */
  get foreignDevice(): string {
    const own = new Set(this.description.devices.map(deviceId))
    return ['bin-4', 'bin-3', 'cabinet-4', 'fridge-8', 'bin-1'].find((device) => !own.has(device))!
  }

  /** A different place each time, so that no row runs empty early. */
  place(): Place {
    const [cabinet] = this.devices('cabinet')
    if (!cabinet) throw new Unasked('this controller has no cabinet')
    const rows = cabinet.shelves.flatMap(({ shelf, rows: count }) =>
      Array.from({ length: count }, (_, index) => ({ shelf, row: index + 1 })),
    )
    const [bin] = this.devices('bin')
    return { ...rows[this.#next++ % rows.length]!, bin: bin?.number ?? 1 }
  }

  /** Opens a session, waits for the reports of its beginning, closes every bin and lowers its lift. */
  async fresh(): Promise<void> {
    if (!this.host.isOpen) await this.host.open()
    await this.host.greet()
    await this.reports()
    for (const bin of this.devices('bin').map(deviceId)) {
      await this.rest(bin, 'close_door', 'closed')
      await this.rest(bin, 'lower_lift', 'down')
    }
  }

  /** The devices that have reported in this session, after all of the board have, or after `REPORTS_MS`. */
  async reports(): Promise<string[]> {
    const { host, description } = this
    const welcome = host.heard.findLastIndex(
      ({ frame }) => frame?.type === 'WELCOME' && frame.host === host.session,
    )
    const devices = () => [...new Set(host.of('EVT', welcome).map(({ dev }) => dev))]
    await host.until(() => description.devices.every((one) => devices().includes(deviceId(one))), REPORTS_MS)
    return devices()
  }

  async rest(dev: string, act: Action, goal: string): Promise<void> {
    for (let attempt = 0; attempt < 3; attempt++) {
      const outcome = await this.act(dev, act)
      if (outcome.refused === 'busy') {
        await this.host.pass(2000)
        continue
      }
      if (outcome.refused === undefined && outcome.state === 'done') return
    }
    throw new Broken(`${dev} could not be brought to ${goal}: ${act} does not succeed`)
  }

  act(
    dev: string,
    act: Action,
    more: Partial<Place> & { op?: string; max?: number; ref?: string } = {},
  ): Promise<Outcome> {
    return this.host.perform({ op: this.host.newOperation(), dev, act, ...more })
  }

  /** A motion that must succeed. Returns its result. */
  async done(dev: string, act: Action): Promise<Result> {
    const outcome = await this.act(dev, act)
    expect(
      outcome.refused === undefined,
      `${act} of ${dev} must be carried out, and was refused: ${outcome.refused}`,
    )
    expect(outcome.state === 'done', `${act} of ${dev} must be done; it is ${textOf(outcome)}`)
    return outcome
  }

  /** Starts a motion from another position, and waits until it is seen or has ended. */
  async started(
    dev: string,
    act: Action,
    more: { op?: string; max?: number } = {},
  ): Promise<{ op: string; from: number }> {
    const op = more.op ?? this.host.newOperation()
    const from = this.host.heard.length
    const answer = await this.host.ask(this.host.command({ dev, act, ...more, op }))
    expect(answer === 'ok', `${act} of ${dev} must be carried out, and was refused: ${answer}`)
    return { op, from }
  }
}

export const textOf = (outcome: Outcome): string =>
  outcome.refused !== undefined
    ? `refused: ${outcome.refused}`
    : `state=${outcome.state}${outcome.why ? ` why=${outcome.why}` : ''} moved=${Number(outcome.moved)} drops=${outcome.drops} ms=${outcome.ms}`

/** A rule of the serial SPEC §11, with its test. */
export interface Rule {
  /** The number in SPEC §11. */
  number: number
  title: string
  /** The test cuts the power. */
  power?: true
  /** Throws `Broken` with the expectation and the observation, or `Unasked` if the rule cannot be tested here. */
  prove(bench: Bench): Promise<void>
}

/** A switch for the board's power. */
export interface Power {
  /** Called before a motion in which the power will be cut, with a description of the motion. */
  prepare(what: string): Promise<void>
  /** Resolves when the power is off. */
  off(): Promise<void>
  on(): Promise<void>
  close(): void
}

/** A relay that a shell command switches. The state (`off` or `on`) replaces `{}` in the command, or is appended. */
export function relayPower(command: string): Power {
  const run = (state: 'on' | 'off'): Promise<void> =>
    new Promise((resolve, reject) => {
      const line = command.includes('{}') ? command.replaceAll('{}', state) : `${command} ${state}`
      const child = spawn('sh', ['-c', line], { stdio: ['ignore', 'ignore', 'inherit'] })
      child.once('error', reject)
      child.once('exit', (code) =>
        code === 0 ? resolve() : reject(new Unasked(`the relay’s command ended with ${code}: ${line}`)),
      )
    })
  return { prepare: async () => {}, off: () => run('off'), on: () => run('on'), close() {} }
}

/** A person who pulls the plug. */
export function operatorPower(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Power {
  let lines: Interface | undefined
  const ask = async (text: string): Promise<void> => {
    lines ??= createInterface({ input, output })
    await lines.question(`\n  ${text} `)
  }
  return {
    prepare: (what) => ask(`Take the plug of the controller in your hand. Press Enter, and pull it ${what}.`),
    off: () => ask('Press Enter when the plug is out.'),
    on: () => ask('Put the plug in again and press Enter.'),
    close: () => lines?.close(),
  }
}
