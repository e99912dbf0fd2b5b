import type { Context, Hono } from 'hono'
import { bodyOf } from '../interface/body.ts'
import { Refusal } from '../interface/refusal.ts'
import { RecordingBody, RunBody, ScenarioText, StepBody } from '../interface/requests.ts'
import type { Desk } from './desk.ts'
import { ScenarioName } from './schema.ts'
import type { ScenarioShelf } from './shelf.ts'
import { readScenario } from './text.ts'

export interface ScenarioRoutesOptions {
  desk: Desk
  scenarios: ScenarioShelf
  isHub: (hubId: number) => boolean
}

/** Routes of scenarios: storage, runs, recording, and single steps. */
export function scenarioRoutes(app: Hono, { desk, scenarios, isHub }: ScenarioRoutesOptions): void {
  function nameOf(c: Context): string {
    const name = ScenarioName.safeParse(c.req.param('name'))
    if (name.success) return name.data
    throw new Refusal(422, 'validation_error', `a scenario's name ${name.error.issues[0]!.message}`)
  }
  function textOf(name: string): string {
    const text = scenarios.read(name)
    if (text === undefined) throw new Refusal(404, 'scenario_not_found', `there is no scenario ${name}`)
    return text
  }
  function onHub(hubId: number): number {
    if (!isHub(hubId)) throw new Refusal(404, 'hub_not_found', `hub ${hubId} is not simulated here`)
    return hubId
  }

  app.get('/api/scenarios', (c) => c.json(scenarios.list()))
  app.get('/api/scenarios/:name', (c) => {
    const name = nameOf(c)
    return c.json({ name, text: textOf(name) })
  })
  app.put('/api/scenarios/:name', async (c) => {
    const name = nameOf(c)
    const { text } = await bodyOf(c, ScenarioText)
    const scenario = readScenario(text)
    if (scenario.name !== name)
      throw new Refusal(422, 'invalid_scenario', `its name in the file is ${scenario.name}, not ${name}`)
    scenarios.write(name, text)
    return c.json({ name, saved: true })
  })
  app.delete('/api/scenarios/:name', (c) => {
    const name = nameOf(c)
    if (!scenarios.remove(name))
      throw new Refusal(404, 'scenario_not_found', `there is no scenario ${name} of your own`)
    return c.json({ name, removed: true })
  })

  app.get('/api/runs', (c) => c.json(desk.runs()))
  app.get('/api/runs/:run', (c) => {
    const run = desk.runs().find(({ id }) => String(id) === c.req.param('run'))
    if (!run) throw new Refusal(404, 'run_not_found', `there is no run ${c.req.param('run')}`)
    return c.json(run)
  })
  app.post('/api/runs', async (c) => {
    const { hub_id, name, text, parameters } = await bodyOf(c, RunBody)
    if ((name === undefined) === (text === undefined))
      throw new Refusal(422, 'validation_error', 'a run needs the name of a scenario, or its text')
    return c.json(desk.start(onHub(hub_id), text ?? textOf(name!), parameters), 201)
  })
  app.delete('/api/runs/:run', (c) => {
    const id = Number(c.req.param('run'))
    if (!desk.stop(id)) throw new Refusal(404, 'run_not_found', `run ${c.req.param('run')} is not under way`)
    return c.json({ id, stopping: true })
  })

  app.post('/api/steps', async (c) => {
    const { hub_id, step } = await bodyOf(c, StepBody)
    return c.json((await desk.doNow(onHub(hub_id), step)) as object)
  })

  app.post('/api/recording', async (c) => {
    const { hub_id } = await bodyOf(c, RecordingBody)
    await desk.record(onHub(hub_id))
    return c.json(desk.recording(), 201)
  })
  app.get('/api/recording', (c) => c.json(desk.recording()))
  /** Ends the recording. The answer contains the scenario, which is not saved. */
  app.delete('/api/recording', async (c) => {
    const name = c.req.query('name') ?? 'recorded'
    if (!ScenarioName.safeParse(name).success)
      throw new Refusal(422, 'validation_error', "a scenario's name is small letters, digits and dashes")
    return c.json({ name, text: await desk.finish(name) })
  })
}
