import type { z } from 'zod'
import type { ErrorBody } from '../contract/errors.ts'
import type { Routes } from '../contract/routes.ts'

/** The types of the interface, inferred from its table of routes. The package contains them written out. */

type In<Schema> = Schema extends z.ZodType ? z.input<Schema> : undefined
type Field<R, Name extends string> = R extends Record<Name, infer Schema> ? In<Schema> : undefined

interface Shape<R extends { response: z.ZodType }> {
  params: Field<R, 'params'>
  query: Field<R, 'query'>
  body: Field<R, 'body'>
  /** True if the body is a form. */
  form: R extends { form: object } ? true : undefined
  answer: z.input<R['response']>
  /** The type of each message of a live stream. */
  message: Field<R, 'message'>
}

type Callable<R> = R extends { interface: 'root' } | { produces: 'text/html' | 'application/octet-stream' }
  ? never
  : R

/** Every endpoint by its method and path, as in the OpenAPI document. */
export type Api = {
  [
    Id in keyof Routes as Callable<Routes[Id]> extends never
      ? never
      : `${Routes[Id]['method']} ${Routes[Id]['path']}`
  ]: Shape<Routes[Id]>
}

export type ErrorCode = ErrorBody['error']['code']
/** One problem of a 422. */
export type Problem = Exclude<ErrorBody['detail'], string>[number]
