import type { LocalApp } from './login-routes.ts'
import { z } from 'zod'
import type { HubAcceptance } from '../core/hub-core.ts'
import { bodyOf, done, Nothing, parse } from './bodies.ts'
import { LocalError } from './local-error.ts'

const Begin = z.strictObject({
  by: z.string().min(1).max(200),
  /** Parts as in `parts` of `GET /api/acceptance`; absent for the whole hub. */
  parts: z.array(z.string().max(64)).min(1).max(100).optional(),
  /** Whether rows without a product are tested too. */
  unassigned_rows: z.boolean().default(false),
})
const StepId = z.string().max(64)
/** One step, or several in their order. */
const steps = { step: StepId.optional(), steps: z.array(StepId).min(1).max(200).optional() }
const Steps = z.strictObject(steps).refine(isOneOfTwo, { error: 'either step or steps is needed' })
const Decide = z
  .strictObject({
    ...steps,
    verdict: z.enum(['passed', 'failed']),
    remark: z.string().max(500).default(''),
  })
  .refine(isOneOfTwo, { error: 'either step or steps is needed' })

interface StepNames {
  step?: string | undefined
  steps?: string[] | undefined
}
function isOneOfTwo({ step, steps }: StepNames): boolean {
  return (step === undefined) !== (steps === undefined)
}
const idsOf = ({ step, steps }: StepNames): string[] => steps ?? [step!]

/** The guided acceptance of the hub by a technician. */
export function acceptanceRoutes(app: LocalApp, { core }: { core: { acceptance: HubAcceptance } }): void {
  app.get('/api/acceptance', (c) => c.json(acceptanceOf(core.acceptance)))
  app.get('/api/acceptance/:id', (c) => {
    const protocol = core.acceptance.protocol(parse(z.uuid(), c.req.param('id'), 'id'))
    if (!protocol) throw new LocalError('not_found')
    return c.json(protocol)
  })
  app.post('/api/acceptance/begin', async (c) => {
    const { by: name, parts, unassigned_rows: withUnassignedRows } = await bodyOf(c, Begin)
    return done(c, core.acceptance.begin(name, parts ?? null, { by: c.get('actor'), withUnassignedRows }))
  })
  app.post('/api/acceptance/step', async (c) => {
    return done(c, core.acceptance.beginSteps(idsOf(await bodyOf(c, Steps)), c.get('actor')))
  })
  app.post('/api/acceptance/stop', async (c) => {
    await bodyOf(c, Nothing)
    return done(c, core.acceptance.stop())
  })
  app.post('/api/acceptance/decide', async (c) => {
    const { verdict, remark, ...names } = await bodyOf(c, Decide)
    return done(c, core.acceptance.decide(idsOf(names), verdict, remark))
  })
  app.post('/api/acceptance/end', async (c) => {
    await bodyOf(c, Nothing)
    return done(c, core.acceptance.end(c.get('actor')))
  })
}

/** `GET /api/acceptance`. */
export type AcceptanceAnswer = ReturnType<typeof acceptanceOf>

const acceptanceOf = (acceptance: HubAcceptance) => ({
  protocol: acceptance.protocol(),
  parts: acceptance.parts(),
  kept: acceptance.kept(),
})
