import { type Client, createClient } from '../../protocol/client/client.ts'
import { pageRequest } from '../../protocol/model/hub-commands.ts'
import { holdsWithin, sleep } from '../../protocol/model/runtime.ts'
import type { Fault } from '../faults/faults.ts'
import { AnswerError } from '../interface/client.ts'
import { type Bench, StepError } from './bench.ts'
import { judge, type Seen } from './conditions.ts'
import { type Answer, answerOf } from './customers.ts'
import type { Json } from './placeholders.ts'
import type { Step } from './schema.ts'

/** Executes a step. Throws `StepError` if it fails or its expectation does not hold. */
export async function doStep(step: Step, seen: Seen): Promise<void> {
  const { bench, customers } = seen
  const ofHub = `/api/hubs/${bench.hubId}`
  const post = (path: string, body: object): Promise<unknown> =>
    bench.simulator.ask('POST', `${ofHub}${path}`, body)
  switch (step.kind) {
    case 'act':
      return noted(seen, post('/act', step.what))
    case 'fault':
      return noted(seen, post('/faults', step.what))
    case 'power':
      return noted(seen, post('/power', step.what))
    case 'line':
      return noted(seen, post('/wire', step.what))
    case 'clear': {
      const active = await bench.simulator.ask<Fault[]>('GET', `${ofHub}/faults`)
      for (const { id, type } of active)
        if (step.what === 'all' || step.what === type)
          await bench.simulator.ask('DELETE', `${ofHub}/faults/${id}`)
      return
    }
    case 'cart':
    case 'pay':
    case 'open':
    case 'cancel':
      seen.answer = await customers.act(step)
      return asWanted(step.what.answers, seen.answer)
    case 'take':
      seen.answer = await customers.act(step)
      return
    case 'command':
      seen.answer = await sendCommand(step.what, bench)
      return asWanted(step.what.answers, seen.answer)
    case 'owner':
      seen.answer = await callOwner(step.what, bench)
      return asWanted(step.what.answers, seen.answer)
    case 'at_hub':
      seen.answer = await callHub(step.what, bench)
      return asWanted(step.what.answers, seen.answer)
    case 'network':
      return bench.demo().network(step.what)
    case 'program':
      return bench.demo().program(step.what.name, step.what.do)
    case 'wait':
      return sleep(bench.clock, step.what)
    case 'wait_until': {
      const { condition, withinMs } = step.what
      let problem: string | undefined
      const holds = async (): Promise<boolean> => (problem = await judge(condition, seen)) === undefined
      if (!(await holdsWithin(bench.clock, withinMs, holds)))
        throw new StepError(`after ${withinMs / 1000} s ${problem}`)
      return
    }
    case 'expect': {
      const problem = await judge(step.what, seen)
      if (problem !== undefined) throw new StepError(problem)
    }
  }
}

async function noted(seen: Seen, work: Promise<unknown>): Promise<void> {
  seen.answer = { status: 200, data: await work }
}

function asWanted(answers: string | undefined, { code, message }: Answer): void {
  if (code === answers) return
  if (code === undefined) throw new StepError(`it went through, and should have been answered ${answers}`)
  throw new StepError(
    `it was answered ${code}: ${message}${answers === undefined ? '' : `; it should have been ${answers}`}`,
  )
}

function sendCommand(what: Extract<Step, { kind: 'command' }>['what'], bench: Bench): Promise<Answer> {
  const { at, answers: _, ...command } = what
  if (at === 'hub') {
    const { path, body } = pageRequest(command)
    return callHub({ call: `POST /${path}`, body }, bench)
  }
  const { name, location, ...others } = { location: {}, ...command }
  const query = { ...location, ...(others as Record<string, string | number | boolean>), hub: bench.hubId }
  return callOwner({ call: `POST /owners/controls/${name}`, query }, bench)
}

function callOwner(
  { call, query, body }: Pick<Extract<Step, { kind: 'owner' }>['what'], 'call' | 'query' | 'body'>,
  bench: Bench,
): Promise<Answer> {
  const { baseUrl, apiKey } = bench.cloud()
  // A file may name any endpoint; the service checks it.
  const client = createClient({ baseUrl, apiKey }) as {
    call: (endpoint: string, input: object) => ReturnType<Client['call']>
  }
  return client.call(call, { ...(query && { query }), ...(body && { body }) }).then(answerOf)
}

async function callHub(
  { call, body }: { call: string; body?: object | undefined },
  bench: Bench,
): Promise<Answer> {
  const [method = '', path = ''] = call.split(' ')
  try {
    return { status: 200, data: await bench.hub().ask(method, path, body) }
  } catch (error) {
    if (!(error instanceof AnswerError)) throw error
    const { status, code, message } = error
    return { status, code, message }
  }
}

/** The value of a name in `${…}` that is not a parameter (`text.ts` lists them). */
export async function valueOf(name: string, { bench, customers }: Seen): Promise<Json> {
  const [source = ''] = name.split('.')
  const about = name.slice(source.length + 1)
  switch (source) {
    case 'hub':
      return bench.hubId
    case 'order':
      return (await customers.order(about)).order_id
    case 'bin': {
      const [bin] = (await customers.order(about)).bins
      if (bin === undefined) throw new StepError(`${about}'s order has no bin`)
      return bin
    }
    case 'product':
    case 'units': {
      const [cabinet, shelf, row] = about.split('/').map(Number)
      const { rows } = await bench.state()
      const found = rows.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)
      if (!found) throw new StepError(`there is no row ${about} at this hub`)
      return source === 'units' ? found.units : found.product_id
    }
    case 'unknown_operation': {
      const state = await bench.hub().ask<{ unknown_operations: { operation_id: string }[] }>('GET', '/state')
      const last = state.unknown_operations.at(-1)
      if (!last) throw new StepError('the hub has no operation with an unknown outcome')
      return last.operation_id
    }
    default:
      throw new StepError(`there is no \${${name}}`)
  }
}
