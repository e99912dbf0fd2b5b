import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { answers } from '../../../simulator/demo/programs.ts'
import { startProxy, type Proxy } from '../../../simulator/demo/proxy.ts'
import { programFolder, startCloud } from '../../cloud/support/program.ts'
import { freePorts } from '../../support/ports.ts'
import { commandOf } from '../../support/programs.ts'
import { install, type Installation } from '../chaos/installation.ts'
import { operate } from '../chaos/operator.ts'
import type { ProgramName } from '../chaos/plant-settings.ts'

const { clock } = systemRuntime()

export interface Moved {
  owner: string
  hubs: { former_hub_id: number; hub_id: number; products: number; claim_code: string; send: string }[]
}

/** A line of hubs to their broker. */
async function lineTo(target: number): Promise<Proxy> {
  const line = await startProxy({ target, clock })
  onTestFinished(() => line.close())
  return line
}

/** A hub that signs in with the certificate of its enrolment. `line`: its line to the broker. */
export async function enrolledInstallation(): Promise<Installation & { line: Proxy }> {
  const [tlsPort] = (await freePorts(1)) as [number]
  const line = await lineTo(tlsPort)
  const commands = new Map<ProgramName, readonly string[]>()
  const cloud = { MQTT_TLS_PORT: String(tlsPort), MQTT_PUBLIC_URL: `mqtts://127.0.0.1:${line.port}` }
  const installation = await install({ kind: { type: 'bare' }, commands, cloud })
  const { plant, becomes, serves, sells } = installation
  for (const program of ['cloud-1', 'simulator'] as const) plant.start(program)
  await serves()
  commands.set('hub', ['env', '-u', 'MQTT_URL', '-u', 'MQTT_PASSWORD', ...commandOf('edge/main')])
  plant.start('hub')
  await becomes('the hub serves its form', () => answers(plant.hubUrl))
  const { claim_code: code } = await operate(plant, 'hubs', 'claim-code', '1')
  const form = { cloud: plant.cloudUrls[0]!, code: String(code) }
  await fetch(`${plant.hubUrl}/enroll`, { method: 'POST', body: new URLSearchParams(form) })
  await sells()
  return { ...installation, line }
}

/** Another cell: a cloud with its own database, without hubs. */
export async function secondCell() {
  const folder = programFolder()
  const [port, mqttPort, tlsPort] = (await freePorts(3)) as [number, number, number]
  const line = await lineTo(tlsPort)
  const settings = {
    DATA_DIR: folder,
    CELL: '1',
    PORT: String(port),
    MQTT_PORT: String(mqttPort),
    MQTT_TLS_PORT: String(tlsPort),
    MQTT_PUBLIC_URL: `mqtts://127.0.0.1:${line.port}`,
  }
  await startCloud(settings).ready()
  const url = `http://127.0.0.1:${port}`
  async function larder<T>(...words: string[]): Promise<T> {
    const [node, ...main] = commandOf('cloud/cli/main')
    const child = spawn(node, [...main, ...words], { env: { PATH: process.env['PATH'], ...settings } })
    let [stdout, errors] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    const status = await new Promise((done) => child.once('close', done))
    expect([words[1], status, errors]).toEqual([words[1], 0, ''])
    return JSON.parse(stdout) as T
  }
  return { url, folder, larder, line, databaseUrl: `sqlite:${join(folder, 'larder.sqlite')}` }
}
