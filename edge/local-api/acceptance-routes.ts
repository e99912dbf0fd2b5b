import type { LocalApp } from './login-routes.ts'
import { z } from 'zod'
import type { HubAcceptance } from '../core/hub-core.ts'
import { bodyOf, done, Nothing, parse } from './bodies.ts'
import { LocalError } from './local-error.ts'

const Begin = z.strictObject({
  by: z.string().min(1).max(200),
  /** As `parts` of `GET /api/acceptance` has them; absent for the whole hub. */
  parts: z.array(z.string().max(64)).min(1).max(100).optional(),
})
const Step = z.strictObject({ step: z.string().max(64) })
const Decide = z.strictObject({
  step: z.string().max(64),
  verdict: z.enum(['passed', 'failed']),
  remark: z.string().max(500).default(''),
})

/** The guided acceptance of the hub by a technician. */
export function acceptanceRoutes(app: LocalApp, { core }: { core: { acceptance: HubAcceptance } }): void {
  app.get('/api/acceptance', (c) => c.json(acceptanceOf(core.acceptance)))
  app.get('/api/acceptance/:id', (c) => {
    const protocol = core.acceptance.protocol(parse(z.uuid(), c.req.param('id'), 'id'))
    if (!protocol) throw new LocalError('not_found')
    return c.json(protocol)
  })
  app.post('/api/acceptance/begin', async (c) => {
    const { by, parts } = await bodyOf(c, Begin)
    return done(c, core.acceptance.begin(by, parts ?? null))
  })
  app.post('/api/acceptance/step', async (c) => {
    const { step } = await bodyOf(c, Step)
    return done(c, core.acceptance.beginStep(step))
  })
  app.post('/api/acceptance/stop', async (c) => {
    await bodyOf(c, Nothing)
    return done(c, core.acceptance.stop())
  })
  app.post('/api/acceptance/decide', async (c) => {
    const { step, verdict, remark } = await bodyOf(c, Decide)
    return done(c, core.acceptance.decide(step, verdict, remark))
  })
  app.post('/api/acceptance/end', async (c) => {
    await bodyOf(c, Nothing)
    return done(c, core.acceptance.end())
  })
}

/** `GET /api/acceptance`. */
export type AcceptanceAnswer = ReturnType<typeof acceptanceOf>

const acceptanceOf = (acceptance: HubAcceptance) => ({
  protocol: acceptance.protocol(),
  parts: acceptance.parts(),
  kept: acceptance.kept(),
})
