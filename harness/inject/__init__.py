"""The injector: carries out the fault plan, proves that each fault fired, and always heals.

```
Injector, a LinkFaults:   what is planned and armed; faults of bytes, their proof and their end
   ├─────── ProcessFaults   faults on processes, and what people do
   ├─────── ServiceFaults   when our own tools are held, and what becomes of their results
   └─────── StdioFaults     when a pipe is held
```
"""
