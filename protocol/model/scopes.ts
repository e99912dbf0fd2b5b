/** Scopes of API keys: those of the document (O §5), and those of events and diagnostics. Write does not imply read. */
export const scopes = [
  'inventory:read',
  'inventory:write',
  'orders:read',
  'orders:write',
  'analytics:read',
  'hubs:read',
  'hubs:write',
  'controls:read',
  'controls:write',
  'maintenance:read',
  'maintenance:write',
  'promotions:read',
  'promotions:write',
  'events:read',
  'events:write',
  'people:read',
  'people:write',
  'diag:read',
  'diag:write',
] as const
export type Scope = (typeof scopes)[number]

export const isScope = (value: string): value is Scope => scopes.some((scope) => scope === value)

/** Roles of identity tokens on owner paths. */
export const roleNames = ['owner', 'technician', 'analyst'] as const
export type RoleName = (typeof roleNames)[number]

const documented = scopes.filter((scope) => !scope.startsWith('diag:'))
const of = (...groups: string[]): Scope[] =>
  documented.filter((scope) => groups.includes(scope.split(':')[0]!))

/** The scopes that a role on a hub grants there. */
export const roleScopes: Record<RoleName, readonly Scope[]> = {
  owner: documented,
  technician: of('hubs', 'controls', 'maintenance'),
  analyst: documented.filter((scope) => scope.endsWith(':read')),
}
