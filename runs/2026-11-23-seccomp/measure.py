import subprocess,sys,time,os,re,statistics
B='target/release/onrush'
def cpu(pid):
    t=0
    for x in os.listdir(f'/proc/{pid}/task'):
        t+=int(open(f'/proc/{pid}/task/{x}/schedstat').read().split()[0])
    return t
def once(io,filt,port,wrk):
    cmd=([ './filter'] if filt else [])+[B,'serve','--respond','200:hello','--listen',f'127.0.0.1:{port}','--threads','1','--cpus','0','--io',io]
    p=subprocess.Popen(cmd,stdout=subprocess.PIPE,stderr=subprocess.DEVNULL,text=True)
    while 'driver' not in p.stdout.readline(): pass
    time.sleep(.2)
    a=cpu(p.pid)
    o=subprocess.run(['taskset','-c','1','wrk','-t1','-c100',f'-d{wrk}',f'http://127.0.0.1:{port}/'],capture_output=True,text=True).stdout
    b=cpu(p.pid)
    n=int(re.search(r'(\d+) requests in',o).group(1))
    p.terminate();p.wait()
    return (b-a)/n/1000
rounds=int(sys.argv[1]);res={}
port=21000
for r in range(rounds):
    for io in ('epoll','io_uring'):
        for filt in ((0,1) if r%2 else (1,0)):
            port+=1
            v=once(io,filt,port,'3s'); res.setdefault((io,filt),[]).append(v)
for io in ('epoll','io_uring'):
    a,b=res[(io,0)],res[(io,1)]
    ratios=[y/x for x,y in zip(a,b)]
    print(io,'off',[f'{x:.2f}' for x in a],'on',[f'{x:.2f}' for x in b],'ratio median %.3f'%statistics.median(ratios),[f'{x:.3f}' for x in ratios], 'min %.3f/%.3f=%.3f'%(min(b),min(a),min(b)/min(a)))
