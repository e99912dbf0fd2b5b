/** The version of the HTTP API and of package.json. Programs report their own version (`protocol/build.ts`). */
export const VERSION = '0.1.0'
