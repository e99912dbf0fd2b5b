import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { dirname } from 'node:path'
import { z } from 'zod'
import type { Clock, Random } from '../../protocol/model/runtime.ts'
import { demoPlaces } from '../demo/places.ts'
import { type JsonInterface, jsonInterface, type Simulator } from '../interface/client.ts'
import type { HubState } from '../hub-state.ts'
import type { Act } from '../physics/world-state.ts'

/** A step that failed or is impossible here, with the reason. */
export class StepError extends Error {}

/** One hub and its surroundings: everything that scenarios act on and observe. */
export interface Bench {
  hubId: number
  clock: Clock
  random: Random
  simulator: Simulator
  state(): Promise<HubState>
  acts(after: number): Promise<Act[]>
  cloud(): Cloud
  /** The hub's own interface, with its token. */
  hub(): JsonInterface
  /** The demo's control over its programs and lines. */
  demo(): DemoControl
  /** True if there is a demo, not only hardware. */
  hasDemo: boolean
}

export interface Cloud {
  baseUrl: string
  apiKey: string
}

interface DemoControl {
  /** Resolves when the program is in the requested state. */
  program(name: 'cloud' | 'edge', verb: 'stop' | 'start' | 'kill' | 'copy' | 'restore'): Promise<void>
  network(hub: 'away' | 'back'): Promise<void>
}

const Demo = z.object({
  base_url: z.string(),
  edge_url: z.string(),
  owner: z.object({ api_key: z.string() }),
  hubs: z.array(z.object({ hub_id: z.int() })).min(1),
})

interface BenchOptions {
  hubId: number
  clock: Clock
  random: Random
  simulator: Simulator
  /** `demo.json` of the demo that this simulator belongs to. */
  demoFile: string | undefined
}

export function createBench({ hubId, clock, random, simulator, demoFile }: BenchOptions): Bench {
  /** Read each time, because a restarted demo has other keys. */
  function demo() {
    if (demoFile === undefined || !existsSync(demoFile))
      throw new StepError('this needs a cloud and a hub: start the simulator with the demo (npm start)')
    const read = Demo.safeParse(JSON.parse(readFileSync(demoFile, 'utf8')))
    if (!read.success) throw new StepError(`${demoFile} does not say where the demo is`)
    if (read.data.hubs[0]!.hub_id !== hubId)
      throw new StepError(`the demo's hub is ${read.data.hubs[0]!.hub_id}: hub ${hubId} is hardware alone`)
    return { ...read.data, places: demoPlaces(dirname(demoFile)) }
  }
  const ofHub = `/api/hubs/${hubId}`
  return {
    hubId,
    clock,
    random,
    simulator,
    hasDemo: demoFile !== undefined,
    state: () => simulator.ask<HubState>('GET', `${ofHub}/state`),
    acts: (after) => simulator.ask<Act[]>('GET', `${ofHub}/actuations?after=${after}`),
    cloud() {
      const { base_url: baseUrl, owner } = demo()
      return { baseUrl, apiKey: owner.api_key }
    },
    hub() {
      const { edge_url: url, places } = demo()
      const token = readFileSync(`${places.journal}.token`, 'utf8').trim()
      return jsonInterface({
        url: `${url}/api`,
        headers: { authorization: `Bearer ${token}` },
        name: 'the hub',
      })
    },
    demo() {
      const { benchSocket } = demo().places
      return {
        program: (name, verb) => askSocket(benchSocket, `/programs/${name}/${verb}`),
        network: (hub) => askSocket(benchSocket, `/network/${hub}`),
      }
    },
  }
}

const PROGRAM_TIMEOUT_MS = 60_000

/** Calls the demo's launcher (`demo/supervisor.ts`). */
function askSocket(socketPath: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(PROGRAM_TIMEOUT_MS)
    const fail = (why: string): void => reject(new StepError(`the demo's launcher cannot do this: ${why}`))
    const call = request({ socketPath, method: 'POST', path, signal }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.once('error', (error) => fail(error.message))
      response.once('end', () => (response.statusCode === 200 ? resolve() : fail(text)))
    })
    call.once('error', (error) => fail(error.message))
    call.end()
  })
}
