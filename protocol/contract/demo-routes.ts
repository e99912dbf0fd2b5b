import { z } from 'zod'
import { defineRoutes } from './route.ts'

const common = { interface: 'root', auth: { kind: 'none' }, rate: 'unlimited', tag: 'Identity' } as const

/** The embedded identity issuer (contract §13). Served only where no other issuer is configured, never in production. */
export const demoRoutes = defineRoutes({
  'demo.identity.token': {
    ...common,
    method: 'POST',
    path: '/demo/identity/token',
    body: z.object({
      sub: z.string().min(1).max(255),
      phone_number: z.string().optional(),
      email: z.string().optional(),
      anonymous: z.boolean().optional(),
      role: z.string().max(64).optional(),
    }),
    response: z.object({
      access_token: z.string(),
      token_type: z.literal('Bearer'),
      expires_in: z.int(),
    }),
    summary: 'Issue an identity token for any subject',
    examples: { body: { sub: 'ada', email: 'ada@example.org' } },
  },
  'demo.identity.keys': {
    ...common,
    method: 'GET',
    path: '/.well-known/jwks.json',
    response: z.object({ keys: z.array(z.record(z.string(), z.unknown())) }),
    summary: "The issuer's public keys",
  },
  'demo.identity.configuration': {
    ...common,
    method: 'GET',
    path: '/.well-known/openid-configuration',
    response: z.record(z.string(), z.unknown()),
    summary: 'OpenID discovery',
  },
})
